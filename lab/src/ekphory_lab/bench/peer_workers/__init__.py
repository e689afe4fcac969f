"""Other products, each in a process of an environment of its own."""
