"""Runs that other programs made, stored in an experiment.

importing.py    the import
recognition.py  which format a file has
golds.py        right answers from a file
servers.py      traces from a server
"""
