"""Features learnt from episodes by a language model, in the background."""
