"""Where bytes live: the device tier, the hot pool, and which side scores which tile. Knows no model and no policy."""
