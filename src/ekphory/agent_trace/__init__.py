"""What one session of the retrieval agent did: its events, and the trace made from them."""
