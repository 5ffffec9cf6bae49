"""``python -m hillinfer.cli``: the same as the command ``hillinfer``."""

from hillinfer.cli import main

main()
