"""What tasks from published data sets share: where their files are, what a record must have, how a prompt is cut."""
