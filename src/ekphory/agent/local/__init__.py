"""The agent without a language model."""
