"""What goes over the wire; the only pydantic of the package."""
