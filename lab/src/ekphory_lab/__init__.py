"""Training, evaluation and benchmarks of ekphory."""

__version__ = "0.1.0"
