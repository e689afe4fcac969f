"""What travels over the wire."""
