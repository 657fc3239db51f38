"""What follows from stored coalition values without a model: credits by any rule, interactions, and
the value without some steps or passages."""
