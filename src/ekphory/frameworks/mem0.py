"""`Memory` and `AsyncMemory`, shaped as mem0's: code for mem0 runs with its import changed.

    from ekphory.frameworks.mem0 import Memory

It needs neither mem0 nor a language model: messages are stored as they are, and no facts are made
of them.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import uuid
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar

from ekphory.config import read_settings
from ekphory.errors import FilterError, InvalidInput, MemoryNotFound, StoreClosed
from ekphory.filters.tree import (
    And,
    Comparison,
    Contains,
    Field,
    FieldReference,
    Filter,
    In,
    IsNull,
    MetadataField,
    Not,
    Or,
)
from ekphory.importers.memory_products import from_scalars, stored_name, to_scalars
from ekphory.memory import Memory as Store
from ekphory.memory import is_server
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import load_configured_embedder, load_configured_reranker, load_embedder
from ekphory.models.reranker import RerankingModel
from ekphory.prompting.recall_block import strip_recall_blocks
from ekphory.scope import SCOPE_FIELDS, Scope
from ekphory.types import DEFAULT_POOL, MemoryRecord, now_utc

_HOSTED = ("MemoryClient", "AsyncMemoryClient")


def __getattr__(name: str) -> object:
    """Refuse mem0's clients of its hosted service, with the reason.

    Raises:
        ImportError: It is asked for one of them.
        AttributeError: There is nothing of that name.
    """
    if name in _HOSTED:
        own = name.removesuffix("Client")
        raise ImportError(f"{name} asks mem0's hosted service. Import {own}, which asks none")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


Messages = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A text that the user said, a message, or a list of messages."""

_REMEDY = 'Give [{"role": "user", "content": "…"}]'


def read_messages(messages: Messages, *, user_id: str | None = None) -> list[dict[str, Any]]:
    """Return the messages that say something, each with `content`, `role` and `producer`.

    Who says something without a name is the user, where one is given, else called by the role.

    Left out are, as in mem0, those of the system and those without words, such as calls of tools
    and pictures; and, as everywhere here, those that hold nothing but recalled memories.

    Raises:
        InvalidInput: It is no message, or one without a role.
    """
    if isinstance(messages, str):
        messages = {"role": "user", "content": messages}
    listed = [messages] if isinstance(messages, Mapping) else messages
    if not isinstance(listed, Sequence):
        raise InvalidInput("messages", messages, "must be a message", _REMEDY)
    user = _name("user_id", user_id)
    read = [_read_message(message, place, user) for place, message in enumerate(listed)]
    return [message for message in read if message is not None]


def _read_message(message: object, place: int, user: str | None) -> dict[str, Any] | None:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise InvalidInput(f"messages[{place}]", message, "must be a message with a role", _REMEDY)
    role, name = message["role"], message.get("name")
    content = _read_words(message.get("content"))
    if role == "system" or not strip_recall_blocks(content).strip():
        return None
    speaker = name or (user if role == "user" else None) or role
    return {"role": role, "producer": speaker, "content": content}


def _read_words(content: object) -> str:
    """Return a content's text: itself, or that of its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str) and text)


# Filters: whose memories are meant, and which of them

_OWNERS = {"user_id": "user", "agent_id": "agent", "run_id": "session"}
_FIELDS = {
    **_OWNERS,
    "actor_id": "producer",
    "role": "role",
    "memory": "text",
    "data": "text",
    "id": "id",
    "created_at": "at",
}
_CHANGED = "updated_at"
_LISTS = ("AND", "OR", "NOT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose memories a call is about, in mem0's words."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    def scope(self, bound: Scope) -> Scope:
        """Return the scope of these within the one that a store was opened with.

        Raises:
            InvalidInput: Nobody is named, or a name is none.
        """
        names = {_OWNERS[key]: _name(key, getattr(self, key)) for key in _OWNERS}
        if not any(names.values()):
            problem = "nobody is named"
            raise InvalidInput("user_id", None, problem, "Give a user_id, an agent_id or a run_id")
        return Scope(org=bound.org, project=bound.project, **names)


def read_filters(owner: Owner, filters: Mapping[str, Any] | None) -> tuple[Owner, Filter]:
    """Return whose memories a call is about, by its arguments and filters, and which of them.

    Raises:
        FilterError: They cannot be read.
        InvalidInput: They name another user, agent or run than the call does.
    """
    named = {key: _name(key, getattr(owner, key)) for key in _OWNERS}
    rest: list[Filter] = []
    for key, value in _list_conditions(filters):
        if key in _OWNERS and isinstance(value, str | int) and value != "*":
            value = _name(key, value)
            if named[key] not in (None, value):
                raise InvalidInput(key, value, f"the call names {named[key]!r}", "Name one of them")
            named[key] = value
        else:
            rest.append(_read_condition(key, value))
    return Owner(**named), And(tuple(rest))


def _name(key: str, value: str | int | None) -> str | None:
    if value is None:
        return None
    # The number of a row in somebody's database, as mem0 takes it.
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(key, value, "must be a name", "Give a text that is not empty")
    return text.strip()


def _list_conditions(filters: object) -> list[tuple[str, Any]]:
    """List what must hold; the parts of an `AND` count as if they stood beside the others."""
    found: list[tuple[str, Any]] = []
    for key, value in _check_mapping({} if filters is None else filters).items():
        if key == "AND":
            found += [pair for part in _check_list(key, value) for pair in _list_conditions(part)]
        else:
            found.append((key, value))
    return found


def _read_condition(key: str, value: Any) -> Filter:  # noqa: ANN401  what a caller wrote
    if key in _LISTS:
        parts = tuple(_join_conditions(part) for part in _check_list(key, value))
        joined: dict[str, Filter] = {"AND": And(parts), "OR": Or(parts), "NOT": Not(Or(parts))}
        return joined[key]
    if key != _CHANGED:
        return _compare(_find_field(key), value)
    # A memory that was never changed tells when it was.
    is_first = IsNull(Field("supersedes"))
    first = And((is_first, _compare(Field("at"), value)))
    later = And((Not(is_first), _compare(Field("created_at"), value)))
    return Or((first, later))


def _compare(field: FieldReference, value: Any) -> Filter:  # noqa: ANN401  likewise
    if value == "*":
        return Not(IsNull(field))
    if value is None:
        return IsNull(field)
    if not isinstance(value, Mapping):
        return Comparison(field, "eq", value)
    return And(tuple(_apply_operator(field, name, bound) for name, bound in value.items()))


def _join_conditions(part: object) -> Filter:
    return And(tuple(_read_condition(key, value) for key, value in _check_mapping(part).items()))


def _find_field(key: str) -> FieldReference:
    if not isinstance(key, str) or not key:
        raise FilterError("filters", key, "must be the name of a field", "Give a text")
    known = _FIELDS.get(key)
    return MetadataField(stored_name(key)) if known is None else Field(known)


def _apply_operator(field: FieldReference, name: str, bound: Any) -> Filter:  # noqa: ANN401  likewise
    make = _OPERATORS.get(name)
    if make is None:
        remedy = f"Use one of {', '.join(_OPERATORS)}; letters count as they are written"
        raise FilterError("filters", name, "no such operator here", remedy)
    return make(field, bound)


def _one_of(field: FieldReference, bound: Any) -> Filter:  # noqa: ANN401  likewise
    if not isinstance(bound, list | tuple | set | frozenset):
        raise FilterError("filters", bound, "in and nin take a list", 'Give ["a", "b"]')
    return In(field, tuple(bound))


_OPERATORS: Mapping[str, Callable[[FieldReference, Any], Filter]] = {
    "eq": lambda field, bound: Comparison(field, "eq", bound),
    "ne": lambda field, bound: Comparison(field, "ne", bound),
    "gt": lambda field, bound: Comparison(field, "gt", bound),
    "gte": lambda field, bound: Comparison(field, "ge", bound),
    "lt": lambda field, bound: Comparison(field, "lt", bound),
    "lte": lambda field, bound: Comparison(field, "le", bound),
    "in": _one_of,
    "nin": lambda field, bound: And((Not(IsNull(field)), Not(_one_of(field, bound)))),
    "contains": Contains,
}


def _check_mapping(given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise FilterError("filters", given, "must be a mapping", 'Give {"user_id": "mara"}')
    return given


def _check_list(key: str, value: object) -> list[object]:
    if not isinstance(value, list) or not value:
        raise FilterError("filters", value, f"{key} takes a list", f'Give {{"{key}": [{{…}}]}}')
    return value


# Days on which memories expire

_UNSET: Any = object()
_KEPT = datetime(9998, 1, 1, tzinfo=UTC)
"""When a memory expires that shall not: an update can move a moment, and not take it away."""


def read_expiration(day: str | date | None) -> datetime | None:
    """Return the moment at which a memory expires that holds until the end of that day, in UTC.

    Raises:
        InvalidInput: It is not a date, or that day has passed.
    """
    if day is None:
        return None
    if isinstance(day, datetime):
        day = day.date()
    try:
        last = day if isinstance(day, date) else date.fromisoformat(day)
        end = datetime(last.year, last.month, last.day, tzinfo=UTC) + timedelta(days=1)
    except (TypeError, ValueError, OverflowError) as error:
        remedy = "Give YYYY-MM-DD, such as 2030-12-31"
        raise InvalidInput("expiration_date", day, "must be a date", remedy) from error
    if end <= now_utc():
        remedy = "Give today or a later day, or None to keep it"
        raise InvalidInput("expiration_date", str(day), "has passed", remedy)
    return end


def find_expiration_date(record: MemoryRecord) -> str | None:
    """Return the last day on which a memory holds; None where it has none."""
    if record.expires_at is None or record.expires_at >= _KEPT:
        return None
    return (record.expires_at - timedelta(microseconds=1)).date().isoformat()


# Memories in mem0's form

Item = dict[str, Any]
"""One memory: `id`, `memory`, `hash`, `metadata`, `created_at`, `updated_at` and whose it is."""
Results = dict[str, list[Item]]
"""`{"results": […]}`"""


def make_item(record: MemoryRecord) -> Item:
    """Return a memory as `get` and `get_all` do; who is not known is left out."""
    known = {
        "user_id": record.user,
        "agent_id": record.agent,
        "run_id": record.session,
        "actor_id": _find_actor(record),
        "role": record.role or None,
        "expiration_date": find_expiration_date(record),
    }
    return {
        "id": record.id,
        "memory": record.text,
        "hash": hashlib.md5(record.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": from_scalars(record.metadata) or None,
        "created_at": record.at.isoformat(),
        "updated_at": _find_change_time(record).isoformat(),
        **{name: value for name, value in known.items() if value is not None},
    }


def make_history(versions: Sequence[MemoryRecord]) -> list[Item]:
    """Return what became of a memory, its versions newest first, as mem0 tells it: oldest first."""
    oldest_first = versions[::-1]
    earlier: list[MemoryRecord | None] = [None, *oldest_first]
    return [
        {
            "id": version.id,
            "memory_id": versions[0].id,
            "old_memory": before.text if before else None,
            "new_memory": version.text,
            "event": "UPDATE" if before else "ADD",
            "created_at": version.at.isoformat(),
            "updated_at": _find_change_time(version).isoformat(),
            "is_deleted": False,
            "actor_id": _find_actor(version),
            "role": version.role or None,
        }
        for before, version in zip(earlier, oldest_first, strict=False)
    ]


def _find_actor(record: MemoryRecord) -> str | None:
    """Return the name that a message gave; who said one without is its user, or called by the role.

    A user's own name is not told twice, since a memory does not keep whether the message gave it.
    """
    unnamed = ("", record.role, record.user if record.role == "user" else "")
    return record.producer if record.producer not in unnamed else None


def _find_change_time(record: MemoryRecord) -> datetime:
    return record.at if record.supersedes is None else record.created_at


# The verbs of mem0

_PROCEDURAL = "procedural_memory"
_IN_VIEW: Filter = Comparison(Field("pool"), "eq", DEFAULT_POOL)
_RERANKING = "accurate"
_LIKELY = 0.1
"""mem0's own least score."""
_READ_AT_ONCE = 500


_NO_CHAT = "chat: no language model is asked, here as in mem0. Put what search finds in a prompt."
_NO_ENTITIES = "entity_store: entities are not kept apart. Search the memories themselves."
_UNOFFERED = {
    "config": "mem0's configuration has no effect. Give path, embedder, reranker to Memory()",
    "api_version": "answers have one form, that of mem0's v1.1",
    "collection_name": "memories lie in one pool of a store. Give path, org, project to Memory()",
    "custom_instructions": "no language model is asked, so none is instructed",
    "db": "what became of a memory lies in its store. Ask history(memory_id)",
    "embedding_model": "it is not told. Give embedder to Memory(), or set EKPHORY_EMBEDDER",
    "llm": "no language model is asked. Put what search finds in a prompt",
    "reranker": "it is not told. Give reranker to Memory(), or set EKPHORY_RERANKER",
    "vector_store": "texts and vectors lie in one store. Open it as ekphory.Memory(path)",
}
"""What objects of mem0 have besides their verbs, and why it is not there."""


def _refuse_attribute(owner: object, name: str) -> NoReturn:
    told = f"{type(owner).__name__!r} object has no attribute {name!r}"
    reason = _UNOFFERED.get(name)
    raise AttributeError(f"{told}: {reason}" if reason else told, name=name, obj=owner)


class FixedProject:
    """Stands where mem0's platform has the settings of a project."""

    def update(self, *given: object, **named: object) -> None:
        """Refuse whatever is given, as mem0's open-source class does.

        Raises:
            InvalidInput: Always.
        """
        problem, remedy = "has no effect here", "Give project= to the constructor"
        raise InvalidInput("project.update", (*given, named), problem, remedy)


class Memory:
    """The verbs of mem0's `Memory`, of its versions 1 and 2, over an embedded store.

    A user, an agent and a run are ekphory's `user`, `agent` and `session`; what is seen is the
    pool `agent_memory`, into which `Memory.add` of ekphory writes as well.

    Args:
        config: A configuration of mem0. Its models and stores are not used, and a warning says so.
        path: Directory of the store, a Lance URI or a server's URL; None for `EKPHORY_STORE`, or
            the default.
        org, project: What is written and read belongs to these; None leaves it open.
        embedder: None for that of `EKPHORY_EMBEDDER`, else the bundled one.
        reranker: None for that of `EKPHORY_RERANKER`, else the bundled one.

    Raises:
        StoreError: The store cannot be opened or made.
    """

    def __init__(
        self,
        config: object = None,
        *,
        path: str | Path | None = None,
        org: str | None = None,
        project: str | None = None,
        embedder: EmbeddingModel | None = None,
        reranker: RerankingModel | None = None,
    ) -> None:
        settings = read_settings()
        self._path = settings.store if path is None else path
        _warn_of_unused(config, self._path)
        self._embedder = embedder
        self._reranker: RerankingModel | str | None = reranker
        if not is_server(self._path):
            self._embedder = embedder or load_configured_embedder(settings) or load_embedder()
            self._reranker = reranker or load_configured_reranker(settings) or "none"
        self._bound = Scope(org=org, project=project)
        self._all = self._open(self._bound)
        self._is_closed = False

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open the store of `EKPHORY_STORE`; as `config` of the constructor."""
        return cls(config_dict)

    def add(  # noqa: PLR0913  mem0's own arguments
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: int | float | str | datetime | None = None,
        expiration_date: str | date | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> Results:
        """Remember messages as they are; on return they are durable.

        No language model makes facts of them, whatever `infer` says. With `infer` a message that
        this owner has said before is not stored again, so that a growing dialogue can be given
        whole; without it every message is a memory of its own.

        Args:
            messages: A text, a message, or a list of messages; those of the system, and those
                without words, are left out.
            user_id, agent_id, run_id: Whose they are; one at least.
            metadata: Anything that JSON can hold. Texts, numbers and booleans can be filtered.
            timestamp: When it happened: seconds since 1970, or ISO 8601; None for now.
            expiration_date: The last day on which they hold, `YYYY-MM-DD`; None keeps them.
            infer: Whether to pass over what was said before.
            memory_type: `procedural_memory`, or None.
            prompt: Of no effect, which a warning says.

        Returns:
            The memories that are new.

        Raises:
            InvalidInput: A message or an argument cannot be used; nothing was written.
        """
        if prompt is not None:
            warnings.warn("prompt has no effect: no language model is asked", stacklevel=2)
        if memory_type not in (None, _PROCEDURAL):
            raise InvalidInput("memory_type", memory_type, "no such type", f"Give {_PROCEDURAL}")
        shared = {
            "metadata": to_scalars(metadata or {}),
            "type": memory_type and "procedural",
            "at": _read_time("timestamp", timestamp),
            "expires_at": read_expiration(expiration_date),
        }
        told = [message | shared for message in read_messages(messages, user_id=user_id)]
        if not infer:
            told = [message | {"id": str(uuid.uuid4())} for message in told]
        owner = Owner(user_id=user_id, agent_id=agent_id, run_id=run_id)
        started = now_utc()
        with self._open_for(owner) as store:
            ids = store.add_messages(told).ids if told else ()
            records = _read_in_order(store, ids)
        new: list[Item] = [
            {
                "id": each.id,
                "memory": each.text,
                "event": "ADD",
                "actor_id": _find_actor(each),
                "role": each.role,
            }
            for each in records
            if each.created_at >= started
        ]
        return {"results": new}

    def search(  # noqa: PLR0913  mem0's own arguments
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = _LIKELY,
        rerank: bool = False,
        explain: bool = False,
        reference_date: int | float | str | date | None = None,
        show_expired: bool = False,
        **kwargs: Any,  # noqa: ANN401  as mem0 has it
    ) -> Results:
        """Find the memories that answer a query, the likeliest first.

        Args:
            query: A question or some words.
            top_k: How many at most, 0 to 1,000.
            filters: Whose memories, and conditions in mem0's words; all of them but `icontains`.
            threshold: Only memories of at least this probability; None for all.
            rerank: Search with the preset `accurate`.
            explain: Give `score_details` as well.
            reference_date: The moment it is asked, for "last week"; None for now.
            show_expired: Must be False: what has expired is never shown.
            **kwargs: What mem0 1 had: `user_id`, `agent_id`, `run_id`, and `limit` for `top_k`.

        Raises:
            InvalidInput: Nobody is named, or an argument cannot be used.
        """
        owner, condition, count = _read_request(kwargs, top_k, filters, show_expired)
        with self._open_for(owner) as store:
            if count == 0:
                return {"results": []}
            found = store.search(
                query,
                k=count,
                pools=[DEFAULT_POOL],
                filter=condition,
                min_score=threshold,
                now=_read_time("reference_date", reference_date),
                preset=_RERANKING if rerank else None,
            )
            hits = [(make_item(hit.memory) | {"score": hit.score}, hit) for hit in found]
        if explain:
            return {"results": [item | {"score_details": dict(hit.scores)} for item, hit in hits]}
        return {"results": [item for item, _ in hits]}

    def get(self, memory_id: str) -> Item | None:
        """Read one memory; None where there is none."""
        try:
            return make_item(self._get_visible(memory_id))
        except MemoryNotFound:
            return None

    def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **kwargs: Any,  # noqa: ANN401  as mem0 has it
    ) -> Results:
        """List memories, the newest first; the arguments are those of `search`."""
        owner, condition, count = _read_request(kwargs, top_k, filters, show_expired)
        with self._open_for(owner) as store:
            if count == 0:
                return {"results": []}
            listed = store.list(filter=_restrict_view(condition), limit=count)
        return {"results": [make_item(record) for record in listed]}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _UNSET,  # noqa: ANN401  as mem0 has it
        data: str | None = None,
    ) -> dict[str, str]:
        """Replace a memory's text, and add to its metadata; `history` keeps what it was.

        Args:
            memory_id: Which.
            text: What it says from now on; None leaves it.
            metadata: Added to what it has.
            expiration_date: The last day on which it holds; None keeps it for good.
            data: mem0 1's name for `text`.

        Raises:
            InvalidInput: There is no such memory, nothing to change, or a value cannot be stored.
        """
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is _UNSET:
            problem = "nothing to change"
            raise InvalidInput("text", None, problem, "Give text, metadata or expiration_date")
        before = self._get_existing(memory_id)
        merged = {**from_scalars(before.metadata), **(metadata or {})}
        expires_at = None
        if expiration_date is not _UNSET:
            expires_at = read_expiration(expiration_date) or _KEPT
        self._all.update(
            memory_id,
            text=text,
            at=before.at,  # mem0's `created_at`, which stays
            metadata=None if metadata is None else to_scalars(merged),
            expires_at=expires_at,
        )
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Forget a memory, with its history.

        Raises:
            InvalidInput: There is no such memory.
        """
        self._get_existing(memory_id)
        self._all.forget(memory_id)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Forget all memories of a user, an agent or a run.

        Raises:
            InvalidInput: Nobody is named.
        """
        with self._open_for(Owner(user_id=user_id, agent_id=agent_id, run_id=run_id)) as store:
            store.forget(filter=_IN_VIEW)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[Item]:
        """Tell what became of a memory, oldest first; empty where there is none."""
        try:
            self._get_visible(memory_id)
            return make_history(self._all.history(memory_id))
        except MemoryNotFound:
            return []

    def reset(self) -> None:
        """Forget everybody's memories, within the organisation and project that were given."""
        self._all.forget(filter=_IN_VIEW)

    def close(self) -> None:
        """End the background work; further calls raise `StoreClosed`."""
        self._is_closed = True
        self._all.close()

    def chat(self, query: str) -> None:
        """Refuse, as mem0 does: no language model is asked.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(_NO_CHAT)

    @property
    def project(self) -> FixedProject:
        """What cannot be set."""
        return FixedProject()

    @property
    def entity_store(self) -> None:
        """Refuse: there is no store of entities.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(_NO_ENTITIES)

    def __getattr__(self, name: str) -> NoReturn:
        _refuse_attribute(self, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @contextmanager
    def _open_for(self, owner: Owner) -> Iterator[Store]:
        """Open the store for one owner, which costs microseconds."""
        scope = owner.scope(self._bound)
        if self._is_closed:
            raise StoreClosed("This memory was closed. Open it again.")
        with self._open(scope) as store:
            yield store

    def _open(self, scope: Scope) -> Store:
        names = {name: getattr(scope, name) for name in SCOPE_FIELDS}
        return Store(self._path, **names, embedder=self._embedder, reranker=self._reranker)

    def _get_existing(self, memory_id: str) -> MemoryRecord:
        try:
            return self._get_visible(memory_id)
        except MemoryNotFound as error:
            problem = "no such memory"
            raise InvalidInput("memory_id", memory_id, problem, "Take an id of get_all") from error

    def _get_visible(self, memory_id: str) -> MemoryRecord:
        record = self._all.get(memory_id)
        if record.pool != DEFAULT_POOL:
            raise MemoryNotFound(memory_id)
        return record


def _read_in_order(store: Store, ids: Sequence[str]) -> list[MemoryRecord]:
    """Read memories by their ids, each once, in the order of the ids."""
    wanted = tuple(dict.fromkeys(ids))
    found: dict[str, MemoryRecord] = {}
    for start in range(0, len(wanted), _READ_AT_ONCE):
        names = wanted[start : start + _READ_AT_ONCE]
        listed = store.list(filter=_restrict_view(In(Field("id"), names)), limit=len(names))
        found |= {record.id: record for record in listed}
    return [found[name] for name in wanted if name in found]


def _read_request(
    given: dict[str, Any], top_k: int, filters: Mapping[str, Any] | None, show_expired: object
) -> tuple[Owner, Filter, int]:
    """Return whose memories, which and how many; `given` are the arguments that mem0 1 had."""
    if show_expired:
        problem = "what has expired is never shown"
        remedy = "Leave it out, and give no expiration_date to what should still be found"
        raise InvalidInput("show_expired", True, problem, remedy)
    for name in given:
        if name not in (*_OWNERS, "limit"):
            raise InvalidInput(name, given[name], "no such argument", "Put it into filters")
    limit = given.pop("limit", None)
    return *read_filters(Owner(**given), filters), top_k if limit is None else limit


def _restrict_view(condition: Filter) -> Filter:
    return And((_IN_VIEW, condition))


def _read_time(
    name: str, moment: int | float | str | date | datetime | None
) -> str | datetime | None:
    if moment is None or isinstance(moment, str | datetime):
        return moment
    if isinstance(moment, date):
        return moment.isoformat()
    try:
        return datetime.fromtimestamp(moment, tz=UTC)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise InvalidInput(name, moment, "must be a moment", "Give seconds since 1970") from error


def _warn_of_unused(config: object, path: str | Path) -> None:
    if not config:
        return
    parts = ", ".join(sorted(map(str, config))) if isinstance(config, Mapping) else "all of it"
    warnings.warn(
        f"mem0's configuration has no effect here ({parts}): memories are kept in {path}, with "
        "the models that EKPHORY_EMBEDDER and EKPHORY_RERANKER name",
        stacklevel=3,
    )


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _make_awaitable(
    verb: Callable[Concatenate[Memory, Arguments], Result],
) -> Callable[Concatenate[AsyncMemory, Arguments], Coroutine[Any, Any, Result]]:
    @functools.wraps(verb)
    async def call(
        self: AsyncMemory, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await asyncio.to_thread(verb, self.memory, *args, **kwargs)

    return call


class AsyncFixedProject:
    """Stands where mem0's platform has the settings of a project."""

    async def update(self, *given: object, **named: object) -> None:
        """Refuse, as `FixedProject` does."""
        FixedProject().update(*given, **named)


class AsyncMemory:
    """A `Memory` of `mem0_memory` whose verbs run in threads; the arguments are the same."""

    def __init__(
        self,
        config: object = None,
        *,
        path: str | Path | None = None,
        org: str | None = None,
        project: str | None = None,
        embedder: EmbeddingModel | None = None,
        reranker: RerankingModel | None = None,
    ) -> None:
        self.memory = Memory(
            config, path=path, org=org, project=project, embedder=embedder, reranker=reranker
        )

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open the store of `EKPHORY_STORE`; as `config` of the constructor."""
        return cls(config_dict)

    async def add(  # noqa: PLR0913  mem0's own arguments
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: int | float | str | datetime | None = None,
        expiration_date: str | date | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        llm: object = None,
    ) -> Results:
        """Do the same as `Memory.add`.

        Raises:
            InvalidInput: As there, or an `llm` is given: no language model is asked.
        """
        if llm is not None:
            raise InvalidInput("llm", llm, "no language model is asked", "Leave it out")
        return await asyncio.to_thread(
            self.memory.add,
            messages,
            user_id=user_id,
            agent_id=agent_id,
            run_id=run_id,
            metadata=metadata,
            timestamp=timestamp,
            expiration_date=expiration_date,
            infer=infer,
            memory_type=memory_type,
            prompt=prompt,
        )

    search = _make_awaitable(Memory.search)  # type: ignore[arg-type]  # for its **kwargs
    get = _make_awaitable(Memory.get)
    get_all = _make_awaitable(Memory.get_all)  # type: ignore[arg-type]  # likewise
    update = _make_awaitable(Memory.update)
    delete = _make_awaitable(Memory.delete)
    delete_all = _make_awaitable(Memory.delete_all)
    history = _make_awaitable(Memory.history)
    reset = _make_awaitable(Memory.reset)

    chat = _make_awaitable(Memory.chat)

    @property
    def project(self) -> AsyncFixedProject:
        """What cannot be set."""
        return AsyncFixedProject()

    entity_store = Memory.entity_store

    def __getattr__(self, name: str) -> NoReturn:
        _refuse_attribute(self, name)

    def close(self) -> None:
        """End the background work; not awaited, as in mem0."""
        self.memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.to_thread(self.close)
