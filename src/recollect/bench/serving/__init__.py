"""Measures `recollect serve` under load, beside the same searches inside one process."""
