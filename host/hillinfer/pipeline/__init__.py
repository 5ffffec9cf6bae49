"""When things run: scoring on both sides at once, reads beside gathers, placement behind the step."""
