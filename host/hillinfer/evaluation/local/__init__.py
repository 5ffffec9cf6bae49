"""Tasks that are made here, of any text and to an exact length: texts, hidden facts, chains, frequent words."""
