"""Boards: what runs ``qk_score`` for the driver in hillinfer.csd.kernel. Each is imported only when it is used."""
