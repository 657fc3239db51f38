"""What benchmarks/credit.py measures, a file for each part and each thing that parts share."""
