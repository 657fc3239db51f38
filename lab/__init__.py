"""Datasets, experiments, tables, exports, learned policies, validity suites, Hopland."""
