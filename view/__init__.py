"""Stored runs to look at: pictures, reports in one file, a local server.

pictures/              one Vega-Lite specification each, from the records that `--json` prints
run_figures.py         the records of a run, and its pictures by name
experiment_figures.py  likewise of an experiment
sampled_answers.py     answers of the reader after each step, of runs whose measurement stored none
drawing.py             SVG, PNG and PDF
run_page.py            the content of a page of a run
experiment_page.py     likewise of an experiment
report.py              such a page as one file
server/                such pages, lists of them and JSON, served on this computer
html.py                templates; templates/ and static/ hold them and the page's script and style
texts.py               hostile text made safe to look at
"""
