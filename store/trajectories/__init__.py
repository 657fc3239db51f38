"""The records of runs that other programs made.

sources.py      the files to import, and the port of a format
trajectory.py   the record of a run from what happened in it
splitting.py    the rules that part passages glued into one text
tags.py         rollouts whose searches and answers stand between tags
calls.py        calls of tools
tools.py        the tools that search
fields.py       fields that several formats share
"""
