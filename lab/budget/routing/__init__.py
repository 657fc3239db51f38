"""A router learned from outcomes: fitting, judging and moving it to other questions."""
