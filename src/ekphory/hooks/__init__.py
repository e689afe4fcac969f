"""Hooks of agent tools: what a prompt needs is recalled, and what was said is captured."""
