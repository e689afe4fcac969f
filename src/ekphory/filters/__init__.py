"""Filters: a typed tree, its text form, its meaning, and its translation for LanceDB."""
