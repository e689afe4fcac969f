"""Training the rerankers."""
