"""The inspector: a page that looks inside a store and changes nothing. See docs/inspector.md."""
