"""Tools for agents over the Model Context Protocol; no other package knows its SDK."""
