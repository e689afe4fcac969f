"""Programs that run in environments of their own: nothing else of recollect is importable there."""
