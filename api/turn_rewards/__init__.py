"""Turn rewards for those who train search agents.

scoring.py   of a batch of rollouts, within a training loop: `hopscope.rewards`
stored.py    of stored runs, from their credits
"""
