"""Measuring retrieval."""
