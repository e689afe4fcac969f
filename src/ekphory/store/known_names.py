"""Which ids and fingerprints a table may hold: what is not among them is new for certain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_MOST_RECENT = 8192


class KnownNames:
    """A set of names kept as 64-bit hashes, eight bytes each; it only grows.

    A name that it lacks was never noted. One that it has may be another of the same hash, or may
    be gone from the table by now, so whoever needs to know asks the table.
    """

    def __init__(self) -> None:
        self._sorted: NDArray[np.int64] = np.empty(0, np.int64)
        self._recent: set[int] = set()

    def note(self, names: Iterable[str | None]) -> None:
        """Add names; None is passed over."""
        self._recent.update(hash(name) for name in names if name is not None)
        if len(self._recent) > _MOST_RECENT:
            recent = np.fromiter(self._recent, np.int64, len(self._recent))
            self._sorted = np.union1d(self._sorted, recent)
            self._recent = set()

    def possible(self, names: Sequence[str]) -> list[str]:
        """Give those of the names that may have been noted, in order."""
        hashes = np.fromiter((hash(name) for name in names), np.int64, len(names))
        found = np.zeros(len(names), np.bool_)
        if len(self._sorted):
            places = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
            found = self._sorted[places] == hashes
        return [
            name
            for name, listed, value in zip(names, found.tolist(), hashes.tolist(), strict=True)
            if listed or value in self._recent
        ]
