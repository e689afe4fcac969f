"""One service over a store and its catalog, which every surface (REST, MCP) is a thin skin of."""
