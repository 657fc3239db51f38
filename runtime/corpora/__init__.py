"""The formats of corpora: `files` read records from disk, `layouts` read passages from records.

A new file format or a new layout is one file in its folder.
"""
