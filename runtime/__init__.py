"""Records, ports and everything that runs a workflow: execution, readers, retrievers."""
