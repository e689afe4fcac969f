"""Making and exporting the models that recollect ships."""
