"""Runs from traces of spans.

span.py      a span, and its meaning in either vocabulary
otlp.py      spans of OTLP, as JSON or protobuf
spool.py     the traces of files, one at a time
ours.py      runs that Hopscope traced
foreign.py   runs that other programs traced
values.py    questions, answers and documents in the values of spans
reading.py   a format of traces
"""
