"""Measuring retrieval: benchmark loaders, measures, baselines, reports."""
