"""One file for each revision of the tables, oldest first.

A new revision also goes into `HEAD` of `store.database.migrate`.
"""
