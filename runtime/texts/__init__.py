"""Text in and out of models: answers, sentences, secrets."""
