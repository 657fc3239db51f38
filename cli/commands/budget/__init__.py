"""`hopscope budget`: explain decisions, learn and compare policies, divide a total."""
