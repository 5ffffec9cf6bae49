"""The timing model: a step of decoding on hardware that need not be there, from what the engine really selected."""
