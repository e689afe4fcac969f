"""Measure the figures of the documentation, and write them into its pages."""
