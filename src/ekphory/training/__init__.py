"""Making and exporting the models that ekphory ships."""
