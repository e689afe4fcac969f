"""Generated stories with questions of several hops, and what the agent learns from them."""
