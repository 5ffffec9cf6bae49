"""The figures of the machine it runs on, each by a measurement of its own.

None of them is a step that the model is later held against: parts of a step are timed at other contexts, on random
numbers, and what is left of a step is taken where there is next to nothing cached.
"""
