"""Live objects of other libraries as parts of a run, in place of names.

`retriever.of_callable` takes any search function, `reader.of_model` a transformers model in memory,
`workflow.of_graph` any LangGraph graph.
"""
