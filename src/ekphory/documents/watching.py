"""Waiting for changes below a folder."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

from ekphory.documents.extra import from_docs_extra


def changes_below(root: Path, *, stopped: Callable[[], bool] | None = None) -> Generator[set[Path]]:
    """Give the paths that changed, in rounds; the first one, often empty, when the watch has begun.

    What changes while a round is worked on is told in the next one, so nothing is missed.

    Args:
        root: A folder or a file.
        stopped: Ends the watch when it says so; asked about twice a second. None watches for ever.

    Raises:
        MissingExtra: `[docs]` is not installed.
    """
    with from_docs_extra("Watching a folder"):
        from watchfiles import watch
    # A file is watched through its folder: editors replace it by another one.
    watched = root if root.is_dir() else root.parent
    rounds = watch(
        watched, watch_filter=None, debounce=400, rust_timeout=500, yield_on_timeout=True
    )
    yield {Path(path) for _, path in next(rounds)}
    for changes in rounds:
        if stopped is not None and stopped():
            return
        if changes:
            yield {Path(path) for _, path in changes}
