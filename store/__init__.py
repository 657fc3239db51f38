"""The durable rows: runs, steps, passages, generations and credits in SQL.

store.py       Store: save, load, list, verify
labels.py      what people said about runs
pushes.py      what was sent to services of traces
runs/          the rows of runs, their credits and appraisals
experiments/   the rows of experiments
database/      the location of the database; the tables and their invariants
migrations/    upgrades of older databases
exporters/     exports to other formats
importers/     runs of other programs, stored in an experiment
formats/       the formats of such runs, one file each
trajectories/  their records
traces/        such runs as traces of spans
"""
