"""The inspector: a page on a store and its memories. See docs/inspector.md."""
