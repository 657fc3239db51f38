"""Runs that other programs made, stored in an experiment.

importing.py    the import
recognition.py  which format a file has
golds.py        right answers from a file
servers.py      traces from a server, by its URL
phoenix.py      the spans of a Phoenix project
mlflow.py       the traces of an experiment of MLflow
trace_api.py    the HTTP API of such a server
"""
