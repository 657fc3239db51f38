"""A server that searches an index for others: agents, and those who train them.

batching.py   queries of many clients, searched at once
formats.py    passages as Search-R1's clients and MCP's read them
server.py     the application: `POST /retrieve`, and MCP's tool `search`
"""
