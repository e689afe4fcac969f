"""Programs that run in environments of their own: nothing else of ekphory is importable there."""
