"""Measuring speed, size and memory."""
