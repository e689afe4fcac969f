"""Episodic memory: what was said in a project, added, found, listed and deleted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ekphory.catalog.failures import NotThere
from ekphory.errors import MemoryNotFound
from ekphory.filters.tree import Field, Filter, In
from ekphory.memory import Memory
from ekphory.moments import now_utc, to_utc
from ekphory.searching import MOST_HITS
from ekphory.service.context import with_context
from ekphory.service.episode import Episode, EpisodeQuery, FoundEpisodes, Message
from ekphory.service.handles import Handles
from ekphory.service.place import Place
from ekphory.service.uids import Uids
from ekphory.service.wire_names import StoredNames, read_filter, stored_metadata
from ekphory.types import MemoryRecord, MemoryType

SHORT_TERM_EPISODES = 20
"""Most of the newest episodes that come with every search."""
_SESSION_KEY = "session_id"


class Episodes:
    """The verbs of episodic memory."""

    def __init__(self, handles: Handles, uids: Uids) -> None:
        self._handles = handles
        self._uids = uids

    def add(
        self, place: Place, messages: Sequence[Message], *, kind: MemoryType | None = None
    ) -> tuple[str, ...]:
        """Remember messages, in order and in one commit; gives an id for each.

        A message that holds nothing but recalled memories is not stored and has no id.

        Args:
            place: The project.
            messages: What was said.
            kind: The type of all of them; None lets the embedder predict it.

        Raises:
            InvalidInput: A message cannot be stored; nothing was written.
        """
        now = now_utc()
        given = [_given(message, now, position) for position, message in enumerate(messages)]
        if kind is not None:
            given = [fields | {"type": kind} for fields in given]
        with self._handles.episodes(place) as memory:
            return memory.add_messages(given).ids

    def search(
        self, place: Place, query: EpisodeQuery, *, long_term: bool, short_term: bool
    ) -> FoundEpisodes:
        """Find what answers a query, and the newest episodes beside it.

        Raises:
            InvalidInput: The query cannot be used.
        """
        condition = self._condition(place, query.filter)
        with self._handles.episodes(place) as memory:
            newest = _newest(memory, condition, query.limit) if short_term else ()
            if not long_term:
                return FoundEpisodes((), tuple(map(Episode, newest)), None)
            result = memory.search(
                query.text,
                # So many more that as many are left without the newest.
                k=min(query.limit + len(newest), MOST_HITS),
                filter=condition,
                min_score=query.min_score,
                agent_mode=query.agent_mode and bool(query.text.strip()),
            )
            scores = {hit.id: hit.score for hit in result}
            recent = {record.id for record in newest}
            found = [Episode(hit.memory, hit.score) for hit in result if hit.id not in recent]
            context = min(query.expand, query.limit - 1)
            if context > 0:
                around = with_context(
                    memory,
                    found,
                    condition=condition,
                    count=context,
                    # The newest among them are shown elsewhere.
                    enough=query.limit + len(recent),
                )
                found = [episode for episode in around if episode.record.id not in recent]
        return FoundEpisodes(
            tuple(found[: query.limit]),
            tuple(Episode(record, scores.get(record.id)) for record in newest),
            result,
        )

    def page(self, place: Place, condition: str, *, limit: int, offset: int) -> list[MemoryRecord]:
        """Read the episodes that fulfil a condition, in the order in which they were said."""
        with self._handles.episodes(place) as memory:
            return memory.list(
                filter=self._condition(place, condition),
                limit=limit,
                offset=offset,
                order="oldest",
            )

    def count(self, place: Place) -> int:
        """How many episodes a project holds."""
        with self._handles.episodes(place) as memory:
            return memory.count()

    def delete(self, place: Place, ids: Sequence[str]) -> None:
        """Forget episodes: all of them, or none where one of them is not there.

        Raises:
            NotThere: The project holds no such episode.
        """
        with self._handles.episodes(place) as memory:
            check_all_there(memory, ids, "Episode")
            memory.forget(filter=In(Field("id"), tuple(ids)))

    def delete_all(self, place: Place) -> None:
        """Forget every episode of a project."""
        with self._handles.episodes(place) as memory:
            memory.forget(filter="TRUE")

    def _condition(self, place: Place, text: str) -> Filter | None:
        return read_filter(
            text, StoredNames(memory_id=lambda uid: self._uids.stored(place, [uid])[0])
        )


def check_all_there(memory: Memory, ids: Sequence[str], noun: str) -> None:
    """Check that a handle holds all of these.

    Raises:
        NotThere: One of them is missing.
    """
    for memory_id in ids:
        try:
            memory.get(memory_id)
        except MemoryNotFound as error:
            raise NotThere(f"{noun} {memory_id!r} does not exist") from error


def _newest(memory: Memory, condition: Filter | None, limit: int) -> tuple[MemoryRecord, ...]:
    """Give the newest episodes, in the order in which they were said."""
    found = memory.search("", k=min(limit, SHORT_TERM_EPISODES), filter=condition)
    return tuple(hit.memory for hit in reversed(found.hits))


def _given(message: Message, now: datetime, position: int) -> dict[str, object]:
    # A moment of its own for each: what is said again later is another episode.
    at = now + timedelta(microseconds=position) if message.at is None else message.at
    session = message.metadata.get(_SESSION_KEY, "")
    return {
        "content": message.content,
        "producer": message.producer,
        "produced_for": message.produced_for,
        "role": message.role,
        "at": to_utc(at, field="timestamp"),
        "session": session if session.strip() else None,
        "metadata": stored_metadata(message.metadata),
    }
