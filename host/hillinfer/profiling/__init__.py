"""HeteroCache's head analysis: how steady each KV head's attention is, which heads look at the same tokens."""
