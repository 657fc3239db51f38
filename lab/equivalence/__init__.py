"""Answer equivalence: human judgements, evaluation of entailments, training of the model."""
