"""Looking through a project's memories without a question."""

from __future__ import annotations

from ekphory.reading import EVERYTHING, in_view
from ekphory.scope import Scope
from ekphory.service.handles import Handles
from ekphory.service.outline import Outline, outline
from ekphory.service.place import Place
from ekphory.service.selection import Selection
from ekphory.store.store import Order
from ekphory.types import MemoryRecord


class Browsing:
    """Pages of memories, and what all of them are like."""

    def __init__(self, handles: Handles) -> None:
        self._handles = handles

    def page(
        self, place: Place, selection: Selection, *, limit: int, offset: int, order: Order
    ) -> list[MemoryRecord]:
        """Read some of the memories that a selection lets through."""
        with self._handles.episodes(place) as memory:
            return memory.list(
                filter=selection.condition(), limit=limit, offset=offset, order=order
            )

    def outline(self, place: Place, selection: Selection) -> Outline:
        """Count a project's memories by pool, type, importance and time."""
        scope = Scope(org=place.org, project=place.project)
        with self._handles.engine() as engine:
            engine.store.version()
            columns = engine.store.scan(in_view(scope, EVERYTHING))
        return outline(columns, selection)
