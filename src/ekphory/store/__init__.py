"""Keeping memories: the protocol, the Lance store, the writer."""
