"""The retrieval agent: follows a question from memory to memory where one lookup is not enough."""
