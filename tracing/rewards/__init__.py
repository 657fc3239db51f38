"""Rewards of the turns of a run, for those who train search agents.

turns.py    the rewards of a run, made from its credits
formats/    the files that trainers read: one file each, found by name
"""
