"""No progress bar for weights that lie on the disk; downloads keep theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_weight_bars() -> Iterator[None]:
    """Keep transformers from drawing its bar while it reads weights.

    The bar goes to stderr, where a command prints its own progress and the one sentence of an
    error. Needs transformers.
    """
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
