"""Promises of policies: `choosing` finds the threshold of least cost that keeps limits of risk with
a level of confidence; `following` tells what a learned policy does on paths; `guarantee` joins both
for `hopscope budget fit --guarantee`; `checking` tells on fresh runs whether a promise holds.
"""
