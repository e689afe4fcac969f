"""Training and exporting rerankers: models that read a question and a passage together."""
