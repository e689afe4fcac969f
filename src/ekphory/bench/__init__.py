"""Measures speed, memory and size on generated memories, beside other stores."""
