"""How fast this machine is at each side's work, and the split of the work between them that follows from it (APP)."""
