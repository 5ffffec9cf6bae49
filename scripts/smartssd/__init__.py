"""A machine with SmartSSDs, from a bare system to ``hillinfer doctor --device xrt:0``, one step after the other.

``python -m scripts.smartssd`` shows every step: what is there, what it would run, why, and how it is undone.
``--apply`` runs those that are not done. What destroys data or may leave a card dead is never run unasked: file
systems are not made at all, and a shell is flashed only with ``--flash``, after the card's address was typed.

Nobody who wrote this had a card. Commands and what they answer are those of XRT 202210.2.13.466's own sources and
documents, of UG1382, and of what owners of cards have published (docs/smartssd.md names them).
"""
