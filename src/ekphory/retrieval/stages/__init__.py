"""The stages of retrieval, one a file, in the order in which a pipeline runs them."""
