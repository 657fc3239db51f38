"""Turn rewards for those who train search agents.

scoring.py   of a batch of rollouts, within a training loop: `hopscope.rewards`
rollouts.py  of other programs, from files and records
stored.py    of stored runs, from their credits
"""
