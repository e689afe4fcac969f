"""`Memory`, shaped as mem0's: code that was written for mem0 runs with its import changed.

    from ekphory.frameworks.mem0_memory import Memory

It needs neither mem0 nor a language model: messages are stored as they are, and no facts are made
of them.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from ekphory.config import read_settings
from ekphory.errors import InvalidInput, MemoryNotFound, StoreClosed
from ekphory.filters.tree import And, Comparison, Field, Filter, In
from ekphory.frameworks.mem0_filters import Owner, selection
from ekphory.frameworks.mem0_messages import Messages, told_messages
from ekphory.frameworks.mem0_results import (
    Item,
    Results,
    added_item,
    explained_item,
    found_item,
    history_items,
    item_of,
)
from ekphory.importers.foreign_metadata import from_scalars, to_scalars
from ekphory.memory import Memory as Store
from ekphory.models.configured import configured_reranker
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import load_embedder
from ekphory.models.reranker import RerankingModel
from ekphory.moments import now_utc
from ekphory.pools import DEFAULT_POOL
from ekphory.scope import Scope
from ekphory.types import MemoryRecord, MemoryType

_PROCEDURAL = "procedural_memory"
_IN_VIEW: Filter = Comparison(Field("pool"), "eq", DEFAULT_POOL)
_RERANKING = "accurate"
_READ_AT_ONCE = 500


class Memory:
    """The verbs of mem0's `Memory`, of its versions 1 and 2, over an embedded store.

    A user, an agent and a run are ekphory's `user`, `agent` and `session`; what is seen is the
    pool `agent_memory`, into which `Memory.add` of ekphory writes as well.

    Args:
        config: A configuration of mem0. Its models and stores are not used, and a warning says so.
        path: Directory of the store, or a Lance URI; None for `EKPHORY_STORE`, or the default.
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
        _tell_of_unused(config, self._path)
        self._embedder = embedder or load_embedder(
            settings.embedder, model=settings.embedder_model, api_key=settings.embedder_api_key
        )
        self._reranker = reranker or configured_reranker(settings)
        self._bound = Scope(org=org, project=project)
        self._all = self._opened(self._bound)
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
        shared = {
            "metadata": to_scalars(metadata or {}),
            "type": _type(memory_type),
            "at": _moment(timestamp),
        }
        told = [message | shared for message in told_messages(messages)]
        if not infer:
            told = [message | {"id": str(uuid.uuid4())} for message in told]
        owner = Owner(user_id=user_id, agent_id=agent_id, run_id=run_id)
        started = now_utc()
        with self._of(owner) as store:
            ids = store.add_messages(told).ids if told else ()
            records = _read(store, ids)
        return {"results": [added_item(entry) for entry in records if entry.created_at >= started]}

    def search(  # noqa: PLR0913  mem0's own arguments
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool = False,
        explain: bool = False,
    ) -> Results:
        """Find the memories that answer a query, the likeliest first.

        Args:
            query: A question or some words.
            user_id, agent_id, run_id: Whose; here as in mem0 1, or in `filters` as in mem0 2.
            limit, top_k: How many at most, 0 to 1,000; `limit` is mem0 1's name for it.
            filters: Conditions in mem0's words; all of them but `icontains`.
            threshold: Only memories of at least this probability; None for all.
            rerank: Search with the preset `accurate`.
            explain: Give `score_details` as well.

        Raises:
            InvalidInput: Nobody is named, or an argument cannot be used.
        """
        owner = Owner(user_id=user_id, agent_id=agent_id, run_id=run_id)
        chosen = selection(owner, filters)
        count = top_k if limit is None else limit
        with self._of(chosen.owner) as store:
            if count == 0:
                return {"results": []}
            found = store.search(
                query,
                k=count,
                pools=[DEFAULT_POOL],
                filter=chosen.condition,
                min_score=threshold,
                preset=_RERANKING if rerank else None,
            )
        return {"results": [explained_item(hit) if explain else found_item(hit) for hit in found]}

    def get(self, memory_id: str) -> Item | None:
        """Read one memory; None where there is none."""
        try:
            return item_of(self._seen(memory_id))
        except MemoryNotFound:
            return None

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        top_k: int = 100,
    ) -> Results:
        """List memories, the newest first; the arguments are those of `search`."""
        owner = Owner(user_id=user_id, agent_id=agent_id, run_id=run_id)
        chosen = selection(owner, filters)
        count = top_k if limit is None else limit
        with self._of(chosen.owner) as store:
            if count == 0:
                return {"results": []}
            listed = store.list(filter=_in_view(chosen.condition), limit=count)
        return {"results": [item_of(record) for record in listed]}

    def update(
        self, memory_id: str, data: str, metadata: Mapping[str, Any] | None = None
    ) -> dict[str, str]:
        """Give a memory another text, and add to its metadata; `history` keeps what it was.

        Raises:
            InvalidInput: There is no such memory, or a value cannot be stored.
        """
        before = self._found(memory_id)
        merged = {**from_scalars(before.metadata), **(metadata or {})}
        self._all.update(memory_id, text=data, metadata=to_scalars(merged))
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Forget a memory, with its history.

        Raises:
            InvalidInput: There is no such memory.
        """
        self._found(memory_id)
        self._all.forget(memory_id)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, str]:
        """Forget all memories of a user, an agent or a run.

        Raises:
            InvalidInput: Nobody is named.
        """
        with self._of(Owner(user_id=user_id, agent_id=agent_id, run_id=run_id)) as store:
            store.forget(filter=_IN_VIEW)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[Item]:
        """Tell what became of a memory, oldest first; empty where there is none."""
        try:
            self._seen(memory_id)
            return history_items(self._all.history(memory_id))
        except MemoryNotFound:
            return []

    def reset(self) -> None:
        """Forget everybody's memories, within the organisation and project that were given."""
        self._all.forget(filter=_IN_VIEW)

    def close(self) -> None:
        """End the background work; further calls raise `StoreClosed`."""
        self._is_closed = True
        self._all.close()

    def _opened(self, scope: Scope) -> Store:
        return Store(
            self._path,
            org=scope.org,
            project=scope.project,
            agent=scope.agent,
            user=scope.user,
            session=scope.session,
            embedder=self._embedder,
            reranker=self._reranker or "none",
        )

    @contextmanager
    def _of(self, owner: Owner) -> Iterator[Store]:
        """Open the store for one owner, which costs microseconds."""
        scope = owner.scope(self._bound)
        if self._is_closed:
            raise StoreClosed("This memory was closed. Open it again.")
        with self._opened(scope) as store:
            yield store

    def _found(self, memory_id: str) -> MemoryRecord:
        try:
            return self._seen(memory_id)
        except MemoryNotFound as error:
            raise InvalidInput(
                "memory_id", memory_id, "no such memory", "Take an id of get_all"
            ) from error

    def _seen(self, memory_id: str) -> MemoryRecord:
        record = self._all.get(memory_id)
        if record.pool != DEFAULT_POOL:
            raise MemoryNotFound(memory_id)
        return record


def _read(store: Store, ids: Sequence[str]) -> list[MemoryRecord]:
    """Read memories by their ids, each once, in the order of the ids."""
    wanted = tuple(dict.fromkeys(ids))
    found: dict[str, MemoryRecord] = {}
    for start in range(0, len(wanted), _READ_AT_ONCE):
        names = wanted[start : start + _READ_AT_ONCE]
        listed = store.list(filter=_in_view(In(Field("id"), names)), limit=len(names))
        found |= {record.id: record for record in listed}
    return [found[name] for name in wanted if name in found]


def _in_view(condition: Filter) -> Filter:
    return And((_IN_VIEW, condition))


def _type(memory_type: str | None) -> MemoryType | None:
    if memory_type not in (None, _PROCEDURAL):
        raise InvalidInput("memory_type", memory_type, "no such type", f"Give {_PROCEDURAL}")
    return None if memory_type is None else "procedural"


def _moment(timestamp: int | float | str | datetime | None) -> str | datetime | None:
    if timestamp is None or isinstance(timestamp, str | datetime):
        return timestamp
    try:
        return datetime.fromtimestamp(timestamp, tz=UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(
            "timestamp", timestamp, "is no moment", "Give seconds since 1970"
        ) from error


def _tell_of_unused(config: object, path: str | Path) -> None:
    if not config:
        return
    parts = ", ".join(sorted(map(str, config))) if isinstance(config, Mapping) else "all of it"
    warnings.warn(
        f"mem0's configuration has no effect here ({parts}): memories are kept in {path}, with "
        "the models that EKPHORY_EMBEDDER and EKPHORY_RERANKER name",
        stacklevel=3,
    )
