"""Keys and values as numbers: shapes, integer casts, scoring, exact attention. Knows nothing of where bytes live."""
