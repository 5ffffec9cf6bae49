"""The cold pool's files: every device keeps its rows here, whatever scores the keys."""
