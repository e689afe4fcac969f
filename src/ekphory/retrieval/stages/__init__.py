"""The stages of retrieval, in the order in which a pipeline runs them."""
