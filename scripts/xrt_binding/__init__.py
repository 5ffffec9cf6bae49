"""A pyxrt of our own, for machines whose XRT brings none: Debian's does not."""
