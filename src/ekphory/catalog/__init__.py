"""What is beside the memories: projects, keys, traces, and how semantic memory is arranged."""
