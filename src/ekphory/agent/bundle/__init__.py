"""The Markdown that tells a language model how to search."""
