"""Episodic memory: what was said in a project, added, found, listed and deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from uuid import UUID, uuid5

from ekphory.agent.provider import AgentOptions
from ekphory.capture.services import ENTITIES
from ekphory.catalog.database import Database
from ekphory.catalog.projects import EpisodicSwitches
from ekphory.errors import MemoryNotFound
from ekphory.filters.grammar import parse_filter
from ekphory.filters.tree import (
    And,
    Comparison,
    Contains,
    Field,
    Filter,
    In,
    IsNull,
    MetadataField,
    Not,
    Operator,
    Or,
    Value,
)
from ekphory.memory import Memory
from ekphory.revise import DecidedPair, OwnedId, find_successors
from ekphory.scope import SCOPE_FIELDS, Scope, get_owner
from ekphory.search import MOST_HITS, SearchResult
from ekphory.service.configuration import Configuration
from ekphory.service.handles import Handles, Place
from ekphory.service.summary import MOST_SUMMARISED, Summaries
from ekphory.store.protocol import Order
from ekphory.types import Hit, MemoryRecord, MemoryType, Scalar, now_utc, to_utc

# Ids of episodes as UUIDs, which MemMachine's client demands from version 0.4 on.
#
# An id of our own holds 116 bits, so it is written into a UUID and read back from it. A caller's
# UUID is shown as it is. Any other id of a caller gets a UUID that the catalog remembers.

_OWN = re.compile(r"([0-9a-f]{13})-([0-9a-f]{16})")
# Version 8 is free for such use (RFC 9562); the `8e` behind it marks ours.
_WRITTEN = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f]{3})-8e([0-9a-f]{2})-([0-9a-f]{12})")
_NAMESPACE = UUID("5d0d3c1e-6a3b-5f5e-9d53-0b6d2a6a4c11")
_REMEMBERED = 20_000


class Uids:
    """Turns ids into UUIDs and back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def shown(self, place: Place, ids: Iterable[str]) -> list[str]:
        """Return the UUIDs under which memories of a project are shown, in order."""
        shown: list[str] = []
        made: dict[str, str] = {}
        for each in ids:
            own = encode_uuid(each)
            uid = own or _others(place.owner, each)
            if own is None and uid != each:
                made[uid] = each
            shown.append(uid)
        self._keep(place.owner, made)
        return shown

    def stored(self, place: Place, uids: Iterable[str]) -> list[str]:
        """Return the ids that UUIDs stand for, in order; what is not a UUID is an id already."""
        return [self._stored(place, each) for each in uids]

    def read_filter(self, place: Place, text: str) -> Filter | None:
        """Read a client's filter, in which ids are UUIDs; None where it is blank.

        Raises:
            FilterError: It cannot be read.
        """
        return read_filter(
            text, memory_id=lambda uid: self._stored(place, uid), own_fields=_OWN_FIELDS
        )

    def _stored(self, place: Place, uid: str) -> str:
        canonical = _canonical(uid)
        if canonical is None:
            return uid
        if own := decode_uuid(canonical):
            return own
        rows = self._database.read(
            "SELECT id FROM shown_ids WHERE org = ? AND project = ? AND shown = ?",
            (*place.owner, canonical),
        )
        return rows[0]["id"] if rows else canonical

    def _keep(self, owner: tuple[str, str], shown: Mapping[str, str]) -> None:
        """Note which UUIDs are shown, each with the id that it stands for."""
        if not shown:
            return
        # Most were shown before, and reading is much quicker than writing.
        rows = self._database.read(
            "SELECT shown FROM shown_ids WHERE org = ? AND project = ? "
            "AND shown IN (SELECT value FROM json_each(?))",
            (*owner, json.dumps(list(shown))),
        )
        org, project = owner
        new = shown.keys() - {row["shown"] for row in rows}
        self._database.insert_new(
            "shown_ids",
            [{"org": org, "project": project, "shown": name, "id": shown[name]} for name in new],
        )


def encode_uuid(memory_id: str) -> str | None:
    """Write an id of our own as a UUID; None where it is none of ours."""
    if (own := _OWN.fullmatch(memory_id)) is None:
        return None
    digits = own[1] + own[2]
    return f"{digits[:8]}-{digits[8:12]}-8{digits[12:15]}-8e{digits[15:17]}-{digits[17:]}"


def decode_uuid(uid: str) -> str | None:
    """Read the id of our own that was written as a UUID; None where it is another UUID."""
    if (found := _WRITTEN.fullmatch(uid)) is None:
        return None
    digits = "".join(found.groups())
    return f"{digits[:13]}-{digits[13:]}"


@lru_cache(_REMEMBERED)
def _others(owner: tuple[str, str], memory_id: str) -> str:
    """Return the UUID for an id that is not ours: itself, where it stands for itself."""
    if _canonical(memory_id) == memory_id and decode_uuid(memory_id) is None:
        return memory_id
    return str(uuid5(_NAMESPACE, "\0".join((*owner, memory_id))))


def _canonical(text: str) -> str | None:
    try:
        canonical = str(UUID(text))
    except ValueError:
        return None
    # Python reads digits without hyphens as well: such a text is an id of a caller.
    return canonical if canonical == text.lower() else None


# Names that MemMachine's clients use in metadata and filters, and how they are stored.
#
# A client may call a metadata key `user` or `session`, which metadata in the store cannot carry:
# such keys are stored behind a mark, and shown and filtered under their own names. The user, agent
# and session of what Python wrote go before metadata of the keys that clients use for them.

_OWN_FIELDS = {"user_id": "user", "agent_id": "agent", "session_id": "session"}
_MARK = "m:"
_EVENT_TIME = {"created_at": "at"}
"""What a client calls the time at which something was said."""


def stored_key(key: str) -> str:
    """Return the name under which a caller's metadata key is stored."""
    return _MARK + key if key in SCOPE_FIELDS or key.startswith(_MARK) else key


def stored_metadata(metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return metadata under the names by which it is stored."""
    return {stored_key(key): value for key, value in metadata.items()}


def shown_metadata(metadata: Mapping[str, Scalar]) -> dict[str, str]:
    """Return stored metadata under its caller's names, as texts."""
    return {key.removeprefix(_MARK): _text(value) for key, value in metadata.items()}


def episode_metadata(record: MemoryRecord) -> dict[str, str]:
    """Return an episode's metadata, with the user, agent and session that are its own."""
    own = {key: getattr(record, name) for key, name in _OWN_FIELDS.items()}
    return shown_metadata(record.metadata) | {key: each for key, each in own.items() if each}


def read_filter(
    text: str,
    *,
    metadata_key: Callable[[str], str] = stored_key,
    memory_id: Callable[[str], str] = str,
    own_fields: Mapping[str, str] = MappingProxyType({}),
) -> Filter | None:
    """Read a client's filter; None where it is blank.

    Args:
        text: In the filter grammar.
        metadata_key: Gives the name under which a metadata key is stored.
        memory_id: Gives the id that a client's id stands for.
        own_fields: By metadata keys, fields that are asked in their place where they are set.

    Raises:
        FilterError: It cannot be read.
    """

    def rename(tree: Filter) -> Filter:
        match tree:
            case And(children) | Or(children):
                return type(tree)(tuple(map(rename, children)))
            case Not(child):
                return Not(rename(child))
            case Comparison(Field("id"), _, str(value)):
                return replace(tree, value=memory_id(value))
            case In(Field("id"), values):
                return In(Field("id"), tuple(memory_id(str(value)) for value in values))
        match tree.field:
            case MetadataField(key):
                asked = replace(tree, field=MetadataField(metadata_key(key)))
                return _ask_first(Field(own_fields[key]), asked) if key in own_fields else asked
            case Field(name):
                return replace(tree, field=Field(_EVENT_TIME.get(name, name)))

    return rename(parse_filter(text)) if text.strip() else None


def _ask_first(own: Field, asked: Comparison | In | Contains | IsNull) -> Filter:
    """Return what is asked of a metadata key, asked of a text field where that is set."""
    otherwise = And((IsNull(own), asked))
    match asked:
        case Comparison(value=str()) | Contains():
            return Or((otherwise, replace(asked, field=own)))
        case In(values=values):
            texts = tuple(value for value in values if isinstance(value, str))
            return Or((otherwise, In(own, texts)))
    return otherwise


def _text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


FACETS = ("pool", "type", "session", "user", "source")
"""Fields by whose values memories are counted and chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What memories must fulfil; None lets everything through.

    Attributes:
        text: What the text contains; small and capital letters are the same.
        pool, type, session, user, source: Only this one.
        entity: Only what names this, as `kind: name`.
        since, until: Only what happened from the one moment on, and before the other.
        least_importance: Only memories of at least this importance, in [0, 1].
    """

    text: str | None = None
    pool: str | None = None
    type: MemoryType | None = None
    session: str | None = None
    user: str | None = None
    source: str | None = None
    entity: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    least_importance: float | None = None

    def condition(self) -> Filter:
        """Return it as a condition of the store."""
        wanted: tuple[tuple[str, Operator, Value | None], ...] = (
            *((name, "eq", getattr(self, name)) for name in FACETS),
            ("at", "ge", self.since),
            ("at", "lt", self.until),
            ("importance", "ge", self.least_importance),
        )
        asked: list[Filter] = [
            Comparison(Field(name), operator, value)
            for name, operator, value in wanted
            if value is not None
        ]
        if self.entity is not None:
            asked.append(Contains(MetadataField(ENTITIES), self.entity, whole=True))
        if self.text:
            asked.append(Contains(Field("text"), self.text, any_case=True))
        return And(tuple(asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeMessage:
    """Something that was said.

    Attributes:
        content: The words.
        producer, produced_for, role: Who said it, to whom, in which chat role.
        at: When; None for now.
        metadata: The caller's own; `session_id` in it also says which conversation it was in.
    """

    content: str
    producer: str = "user"
    produced_for: str = ""
    role: str = ""
    at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeQuery:
    """What is looked for.

    Attributes:
        text: The question; empty for the newest.
        limit: How many episodes.
        filter: A condition in the filter grammar; blank for none.
        min_score: Only episodes of at least this probability.
        expand: How many neighbours each found episode brings with it, within `limit`.
        agent_mode: Whether the retrieval agent follows the question from memory to memory.
    """

    text: str
    limit: int = 10
    filter: str = ""
    min_score: float | None = None
    expand: int = 0
    agent_mode: bool = False


@dataclass(frozen=True, slots=True)
class Episode:
    """A stored message, as a search found it.

    Attributes:
        record: The message.
        score: How likely it answers; None where nothing was asked of it.
        superseded_by, since: Id of what holds in its place, and since when; None where it stands.
    """

    record: MemoryRecord
    score: float | None = None
    superseded_by: str | None = None
    since: datetime | None = None

    @classmethod
    def of(cls, hit: Hit) -> Episode:
        """Return the message that a hit is."""
        return cls(hit.memory, hit.score, hit.superseded_by, hit.since)


@dataclass(frozen=True, slots=True)
class FoundEpisodes:
    """What a search found.

    Attributes:
        long_term: What answers, the likeliest first, without what is in `short_term`.
        short_term: The newest episodes, in the order in which they were said.
        summary: Of what was said before them in the same session; empty where nothing was.
        result: What the search gave; None where long-term memory is switched off.
    """

    long_term: tuple[Episode, ...]
    short_term: tuple[Episode, ...]
    summary: str
    result: SearchResult | None


# What holds in the place of what is listed.

_MOST_DECISIONS = 100_000
"""On the memories of one page."""


def read_successors(memory: Memory, ids: Sequence[str]) -> dict[OwnedId, DecidedPair]:
    """Return what superseded those of these memories that hold no more, as `find_successors`.

    One that was removed since it was listed is passed over.
    """
    there = list(ids) if memory.revisions(limit=1) else []
    while there:
        try:
            return find_successors(memory.revisions(of=there, limit=_MOST_DECISIONS))
        except MemoryNotFound as removed:
            if removed.memory_id not in there:
                raise
            there = [each for each in there if each != removed.memory_id]
    return {}


# The episodes around those that were found.

_MOST_AT_ONE_MOMENT = 1_000
_SHARE_BEFORE = 3
"""One neighbour in so many is one that was said before, as in MemMachine."""


def with_context(
    memory: Memory, found: Sequence[Episode], *, condition: Filter | None, count: int, enough: int
) -> list[Episode]:
    """Return each found episode together with `count` neighbours of the same session.

    Each group stands in the order in which it was said, the group of the likeliest first; an
    episode comes once.

    Args:
        memory: A handle on the project.
        found: The likeliest first.
        condition: What neighbours must fulfil as well.
        count: How many; a third of them said before, the others after.
        enough: So many episodes are all that is wanted; no more are looked for.
    """
    scored = {episode.record.id: episode for episode in found}
    shown: dict[str, Episode] = {}
    for episode in found:
        # Each one takes three reads, which a large `count` must not multiply by a large `found`.
        if len(shown) >= enough:
            break
        before = count // _SHARE_BEFORE
        for record in around(
            memory, episode.record, condition, before=before, after=count - before
        ):
            shown.setdefault(record.id, scored.get(record.id) or Episode(record))
    return list(shown.values())


def around(
    memory: Memory, record: MemoryRecord, condition: Filter | None, *, before: int, after: int
) -> list[MemoryRecord]:
    """Return a memory with what was said before and after it in its session, in that order."""
    in_view = _in_session(record.session, condition)

    def at(operator: Operator, limit: int, order: Order) -> list[MemoryRecord]:
        if limit == 0:
            return []
        when = Comparison(Field("at"), operator, record.at)
        return memory.list(filter=And((in_view, when)), limit=limit, order=order)

    together = at("eq", _MOST_AT_ONE_MOMENT, "written")
    ids = [each.id for each in together]
    place = ids.index(record.id) if record.id in ids else len(ids)
    earlier = [*reversed(at("lt", before, "newest")), *together[:place]]
    later = [*together[place + 1 :], *at("gt", after, "oldest")]
    return [*earlier[len(earlier) - min(before, len(earlier)) :], record, *later[:after]]


def _in_session(session: str | None, condition: Filter | None) -> Filter:
    field = Field("session")
    same = IsNull(field) if session is None else Comparison(field, "eq", session)
    return same if condition is None else And((same, condition))


# The verbs of episodic memory.


class Episodes:
    """The verbs of episodic memory."""

    def __init__(
        self, handles: Handles, uids: Uids, summaries: Summaries, configuration: Configuration
    ) -> None:
        self._handles = handles
        self._configuration = configuration
        self._uids = uids
        self._summaries = summaries

    def add(
        self, place: Place, messages: Sequence[EpisodeMessage], *, kind: MemoryType | None = None
    ) -> tuple[str, ...]:
        """Remember messages, in order and in one commit; return an id for each.

        A message that holds nothing but recalled memories is not stored and has no id.

        Args:
            place: The project.
            messages: What was said.
            kind: The type of all of them; None lets the embedder predict it.

        Raises:
            InvalidInput: A message cannot be stored; nothing was written.
        """
        now = now_utc()
        given = [_message_fields(each, now, position) for position, each in enumerate(messages)]
        if kind is not None:
            given = [fields | {"type": kind} for fields in given]
        with self._handles.episodes(place) as memory:
            return memory.add_messages(given).ids

    def search(
        self, place: Place, query: EpisodeQuery, switches: EpisodicSwitches
    ) -> FoundEpisodes:
        """Find what answers a query, and the newest episodes beside it.

        Raises:
            InvalidInput: The query cannot be used.
        """
        condition = self._uids.read_filter(place, query.filter)
        with self._handles.episodes(place, surface="server") as memory:
            capacity = self._configuration.short_term_episodes()
            most = min(query.limit, capacity) if switches.short_term else 0
            newest = _newest(memory, condition, most) if most else ()
            # With fewer there was nothing before them.
            full = len(newest) == most > 0
            summary = self._summarise(place, memory, condition, newest) if full else ""
            if not switches.long_term:
                return FoundEpisodes((), newest, summary, None)
            follows = query.agent_mode and bool(query.text.strip())
            result = memory.search(
                query.text,
                # So many more that as many are left without the newest.
                k=min(query.limit + len(newest), MOST_HITS),
                filter=condition,
                min_score=query.min_score,
                agent_mode=follows,
                agent_options=self._agent_options() if follows else None,
            )
            known = {hit.id: Episode.of(hit) for hit in result}
            recent = {each.record.id for each in newest}
            found = [each for each in known.values() if each.record.id not in recent]
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
        shown = tuple(known.get(each.record.id, each) for each in newest)
        return FoundEpisodes(tuple(found[: query.limit]), shown, summary, result)

    def _agent_options(self) -> AgentOptions:
        return AgentOptions(settings=self._configuration.agent(), stage_results="trace")

    def _summarise(
        self, place: Place, memory: Memory, condition: Filter | None, shown: Sequence[Episode]
    ) -> str:
        """Sum up what was said before the newest episodes, in the session of the last of them."""
        where = _in_session(shown[-1].record.session, condition)
        known = {each.record.id for each in shown}
        found = _newest(memory, where, MOST_SUMMARISED + len(shown))
        before = [each.record for each in found if each.record.id not in known]
        return self._summaries.summarise(f"{place.session_key}\0{where}", before)

    def page(self, place: Place, condition: str, *, limit: int, offset: int) -> list[Episode]:
        """Read the episodes that fulfil a condition, in the order in which they were said."""
        asked = self._uids.read_filter(place, condition)
        with self._handles.episodes(place) as memory:
            records = memory.list(filter=asked, limit=limit, offset=offset, order="oldest")
            later = read_successors(memory, [record.id for record in records])
        decided = [later.get((get_owner(record), record.id)) for record in records]
        return [
            Episode(record)
            if pair is None
            else Episode(record, superseded_by=pair.newer.id, since=pair.since)
            for record, pair in zip(records, decided, strict=True)
        ]

    def count(self, place: Place) -> int:
        """How many episodes a project holds."""
        with self._handles.episodes(place) as memory:
            return memory.count()

    def delete(self, place: Place, ids: Sequence[str]) -> None:
        """Forget those of these episodes that the project holds."""
        with self._handles.episodes(place) as memory:
            memory.forget(filter=In(Field("id"), tuple(ids)))

    def delete_all(self, place: Place) -> None:
        """Forget every episode of a project.

        Those too that a process on the same store wrote, which knows of no other embedder.
        """
        scope = Scope(org=place.org, project=place.project)
        for opened in (self._handles.episodes(place), self._handles.open(scope)):
            with opened as memory:
                memory.forget(filter="TRUE")


def _newest(memory: Memory, condition: Filter | None, most: int) -> tuple[Episode, ...]:
    """Return the newest episodes, in the order in which they were said."""
    found = memory.search("", k=most, filter=condition)
    return tuple(replace(Episode.of(hit), score=None) for hit in reversed(found.hits))


def _message_fields(message: EpisodeMessage, now: datetime, position: int) -> dict[str, object]:
    # A moment of its own for each: what is said again later is another episode.
    at = now + timedelta(microseconds=position) if message.at is None else message.at
    session = message.metadata.get("session_id", "")
    return asdict(message) | {
        "at": to_utc(at, field="timestamp"),
        "session": session if session.strip() else None,
        "metadata": stored_metadata(message.metadata),
    }
