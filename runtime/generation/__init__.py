"""Generation and scoring of tokens by a transformers model in this process."""
