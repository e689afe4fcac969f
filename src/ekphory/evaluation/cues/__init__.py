"""Queries that ask for a type of memory, or for what is important."""
