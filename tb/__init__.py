"""Testbenches of the scoring kernel and the models they compare it with."""
