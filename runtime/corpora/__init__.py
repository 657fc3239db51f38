"""The formats of corpora: `files` read records from disk, `layouts` passages from records.

Another file format, or another layout of records, is one file in its folder.
"""
