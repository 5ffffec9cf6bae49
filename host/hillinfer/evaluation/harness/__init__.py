"""lm-evaluation-harness: its tasks in ``hillinfer eval``, and every policy as a model of its own command line."""
