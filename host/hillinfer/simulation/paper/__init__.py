"""The papers' figures beside what the timing model and recorded runs give: the statement, ours, the difference, why."""
