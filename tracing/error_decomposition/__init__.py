"""EoR's errors: where between retrieval and answer a run went wrong."""
