"""Processes that tests start, and kill."""
