"""Times in the words of a query."""
