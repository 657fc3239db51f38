"""The parts of benchmarks/credit.py, one file each, and their shared modules."""
