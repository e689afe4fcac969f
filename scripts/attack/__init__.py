"""Attacks on what README promises; `make attack` runs them all."""
