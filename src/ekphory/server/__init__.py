"""HTTP over the service: MemMachine's REST API, reranking, embeddings, health and metrics."""
