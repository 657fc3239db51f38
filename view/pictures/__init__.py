"""The pictures: one module each, with a function `spec` from plain records to a Vega-Lite
specification.

The records are those that `--json` prints. A specification names its own table: `usermeta.columns`
holds the headings of `data.values`, and `description` is the text of a screen reader.
"""
