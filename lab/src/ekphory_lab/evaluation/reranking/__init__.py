"""Measuring rerankers."""
