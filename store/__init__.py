"""The durable rows: runs, steps, passages, generations and credits in SQL.

store.py       Store: save, load, list, verify
schema.py      the tables and what they keep true
migrations/    how older databases become current
exporters/     other formats
"""
