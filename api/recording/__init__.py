"""Runs of somebody else's program, recorded while it works.

tape.py        what happens in a recording, as the spans of a trace
places.py      the recording that the present code belongs to
attributes.py  searches, replies and calls of tools as attributes of spans
replies.py     the reply of a model in the objects of its client
background.py  measures some of the runs while the program goes on
keeping.py     the store and experiment that runs go to
recording.py   `hopscope.recording`
decorators.py  `hopscope.retrieval` and `hopscope.generation`
frameworks/    what frameworks tell of their calls
guard.py       decides on searches, by a policy and limits
middleware.py  `hopscope.middleware`, for LangChain's agents
guarded.py     `hopscope.guarded`, for nodes of LangGraph's graphs

Invariant: a recording never changes what the program does: it returns and raises what it would
without one, and a run that cannot be read or stored is told in the log.
"""
