"""The endpoints, each a few lines: read the request, call the service, shape the answer."""
