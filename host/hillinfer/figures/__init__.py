"""Pictures of what was measured, one file per picture: from a report to a figure, a text that says it and a table."""
