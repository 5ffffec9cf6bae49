"""What stands between make and AMD's tools: finding them, calling them, and judging what they report.

Standard library only, so that a build machine needs no more than Python and Vitis. Nothing here knows what the
kernel computes. ``python -m scripts.vitis --help`` lists the commands; docs/vitis.md explains them.
"""
