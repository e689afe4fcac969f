"""Measures `ekphory serve` under load, beside the same searches inside one process."""
