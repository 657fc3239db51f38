"""The gate for continuous integration: has an experiment become worse than its baseline?

`outcomes` holds the scores of an experiment question by question, from a database or a file;
`gate` tests them; `report` and `junit` print; `plugin` is the plug-in of pytest.
"""
