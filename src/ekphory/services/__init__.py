"""The transport to remote model services: JSON over HTTP, repeated and bounded."""
