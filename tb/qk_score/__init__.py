"""The testbench of ``qk_score``: stimuli, the device under test in its surroundings, and tests by subject."""
