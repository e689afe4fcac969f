"""Keeping memories: the protocol, the Lance store, the reference store, the writer."""
