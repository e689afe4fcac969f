"""The command line: one file a command, and the few files that they share."""
