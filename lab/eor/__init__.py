"""Learning the weights of EoR's voter."""
