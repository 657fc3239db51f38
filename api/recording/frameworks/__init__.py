"""What frameworks tell of their calls, as recorded runs.

calls.py      the calls that a framework tells of, as spans
langchain.py  `hopscope.HopscopeHandler`, for LangChain and LangGraph
listening.py  `hopscope.record_llama_index`, `record_haystack` and `record_dspy`
llama_index.py, haystack.py, dspy.py  what each of these tells
"""
