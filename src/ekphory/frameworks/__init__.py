"""Ekphory inside the frameworks that people build agents with; each file needs its own extra."""
