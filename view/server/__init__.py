"""The local server: pages for people, the same records as JSON.

app.py        the application, from a store
pages.py      pages and fragments
records.py    the JSON API, with OpenAPI
live.py       progress of experiments as server-sent events
labelling.py  what a person says about a run, stored
guarding.py   who may ask: hosts, tokens, other sites' requests, the policy of pages
"""
