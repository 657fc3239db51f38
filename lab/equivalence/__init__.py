"""Answer equivalence: reads human judgements of answers, evaluates entailments, trains ours."""
