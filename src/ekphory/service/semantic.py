"""Semantic memory: features, added, found, changed and deleted."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from filelock import ReadWriteLock, Timeout

from ekphory import history
from ekphory.agent_trace import StageResult
from ekphory.catalog.database import NotThere
from ekphory.errors import MemoryNotFound, StoreLocked
from ekphory.filters.tree import And, Comparison, Field, Filter, In, IsNull, MetadataField
from ekphory.search import SearchResult
from ekphory.service.episodes import read_filter, shown_metadata, stored_key, stored_metadata
from ekphory.service.handles import Handles, Place, features_scope
from ekphory.service.sets import SemanticSet, SemanticSets, check_reach
from ekphory.types import Hit, MemoryRecord

# A feature, and the memory that keeps it.

_CATEGORY, _TAG, _NAME = "feature:category", "feature:tag", "feature:name"
_CITATIONS = "feature:citations"
_OWN_KEYS = (_CATEGORY, _TAG, _NAME, _CITATIONS)
_FILTERED = {"category": _CATEGORY, "tag": _TAG, "feature_name": _NAME, "feature": _NAME}
"""What a filter calls a part of a feature, as a metadata key: `m.category = 'profile'`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One thing that is known.

    Attributes:
        id: Its name; empty before it is added.
        set_id: The set it belongs to.
        category, tag, name: Where it stands in its set, such as profile, food, favourite dish.
        value: What is known, such as pizza.
        metadata: The caller's own.
        citations: Ids of the episodes that it was learnt from.
    """

    id: str = ""
    set_id: str
    category: str
    tag: str
    name: str
    value: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    citations: tuple[str, ...] = ()


def feature_key(key: str) -> str:
    """Return the name under which a feature's metadata key is stored."""
    return _FILTERED.get(key) or stored_key(key)


def memory_fields(feature: Feature) -> dict[str, Any]:
    """Return what a feature is kept as: `favourite dish: pizza`, with its parts as metadata."""
    own = (feature.category, feature.tag, feature.name, json.dumps(list(feature.citations)))
    metadata = stored_metadata(feature.metadata) | dict(zip(_OWN_KEYS, own, strict=True))
    return {"text": _lead(feature.name) + feature.value, "metadata": metadata}


def is_feature(record: MemoryRecord) -> bool:
    """Whether a memory keeps a feature."""
    return all(name in record.metadata for name in _OWN_KEYS)


def feature_of(record: MemoryRecord) -> Feature:
    """Return the feature that a memory keeps."""
    category, tag, name, citations = (str(record.metadata[key]) for key in _OWN_KEYS)
    others = {key: value for key, value in record.metadata.items() if key not in _OWN_KEYS}
    return Feature(
        id=record.id,
        set_id=record.session or "",
        category=category,
        tag=tag,
        name=name,
        value=record.text.removeprefix(_lead(name)),
        metadata=shown_metadata(others),
        citations=tuple(json.loads(citations)),
    )


def _lead(name: str) -> str:
    """Return a name as words, for the search to find it by: `favourite_dish` has two of them."""
    return f"{name.replace('_', ' ')}: "


# The verbs of features.

MOST_IN_CATEGORY = 10_000
"""So many features of one category of one set are looked through."""
# No shared pool: a handle that is bound to a user, and to no project, must not see them.
_POOL = "agent_memory"
_ID_BYTES = 12


def _new_fields(owner: SemanticSet, feature: Feature) -> dict[str, Any]:
    """Return what a feature of a set is added as."""
    return memory_fields(feature) | {"session": owner.id, "pool": _POOL, "type": "semantic"}


MOVES_FILE = ".ekphory-moves.lock"
_LONGEST_WAIT = 10.0
"""Seconds."""


def _wait_for(turn: ExitStack, lock: AbstractContextManager[None]) -> None:
    try:
        turn.enter_context(lock)
    except Timeout as error:
        raise StoreLocked(
            "Sets of features are being moved or forgotten. Try again in a moment."
        ) from error


class Features:
    """The verbs of semantic memory."""

    def __init__(self, handles: Handles, sets: SemanticSets, folder: Path) -> None:
        self._handles = handles
        self._sets = sets
        self._moves = folder / MOVES_FILE

    def add(self, place: Place, feature: Feature) -> str:
        """Remember a feature, and return its id.

        Raises:
            InvalidInput: It cannot be stored.
            NotPermitted: Its set is the organisation's, and may not be changed from here.
        """
        feature_id = secrets.token_hex(_ID_BYTES)
        with self._staying():
            owner = self._sets.for_writing(place, feature.set_id)
            # The tags of the set are the feature's too, so that a filter finds it by them.
            tagged = replace(feature, metadata={**owner.tags, **feature.metadata})
            with self._handles.features(place.org, owner.project, owner.embedder or "") as memory:
                memory.add(**_new_fields(owner, tagged), id=feature_id)
        return feature_id

    def get(self, place: Place, feature_id: str) -> Feature:
        """Return a feature of the project or of its organisation.

        Raises:
            NotThere: There is none with that id.
        """
        return feature_of(self._find(place, feature_id)[2])

    def update(self, place: Place, feature_id: str, changes: Mapping[str, Any]) -> None:
        """Change some fields of a feature; the earlier version is kept as history.

        Args:
            place: From where it is changed.
            feature_id: Its id.
            changes: New values by the names in `Feature`.

        Raises:
            NotThere: There is none with that id.
        """

        def find_changes(record: MemoryRecord) -> Mapping[str, Any]:
            changed = replace(feature_of(record), **changes)
            if "metadata" in changes:
                tags = self._sets.get(place, changed.set_id).tags
                changed = replace(changed, metadata={**tags, **changed.metadata})
            return memory_fields(changed)

        with self._staying():
            project, embedder, _ = self._find(place, feature_id)
            check_reach(place, project)
            with self._handles.features_engine(embedder) as engine:
                history.change(engine, features_scope(place.org, project), feature_id, find_changes)

    def delete(self, place: Place, ids: Sequence[str]) -> None:
        """Forget features: all of them, or none where one of them is not there.

        Raises:
            NotThere: There is no such feature.
        """
        found: dict[tuple[str | None, str], list[str]] = {}
        with self._staying():
            for feature_id in ids:
                project, embedder, _ = self._find(place, feature_id)
                check_reach(place, project)
                found.setdefault((project, embedder), []).append(feature_id)
            for (project, embedder), own in found.items():
                with self._handles.features(place.org, project, embedder) as memory:
                    memory.forget(filter=In(Field("id"), tuple(own)))

    def search(
        self,
        place: Place,
        text: str,
        *,
        limit: int,
        condition: str = "",
        set_metadata: Mapping[str, object] | None = None,
        hops: Sequence[StageResult] = (),
    ) -> tuple[list[Feature], list[SearchResult]]:
        """Find the features that answer, the likeliest first; and what each search did.

        Args:
            place: The project.
            text: The question.
            limit: How many features.
            condition: In the filter grammar; a feature's own parts are `m.category`, `m.tag` and
                `m.feature_name`. Blank for none.
            set_metadata: What the sets are about; None for all that a project sees by itself.
            hops: Those that the agent resolved among episodes: what they looked for is looked for
                here too, and what is found counts as much as the hop is sure.
        """
        queries = {hop.query: hop.confidence for hop in hops} | {text: 1.0}
        results: list[SearchResult] = []
        places: dict[str, tuple[int, float]] = {}
        found: dict[str, Hit] = {}
        sought = list(self._conditions(place, condition, set_metadata))
        for query, trust in queries.items():
            hits: list[Hit] = []
            for project, embedder, wanted in sought:
                with self._handles.features(place.org, project, embedder) as memory:
                    results.append(memory.search(query, k=limit, filter=wanted))
                    hits += results[-1]
            for rank, hit in enumerate(sorted(hits, key=lambda hit: -hit.score)):
                # The first of every query come before the second.
                at = (rank, -hit.score * trust)
                places[hit.id] = min(places.get(hit.id, at), at)
                found[hit.id] = hit
        ordered = sorted(found, key=lambda feature_id: places[feature_id])
        return [feature_of(found[each].memory) for each in ordered[:limit]], results

    def page(
        self,
        place: Place,
        *,
        limit: int,
        offset: int = 0,
        condition: str = "",
        set_metadata: Mapping[str, object] | None = None,
    ) -> list[Feature]:
        """Read features, the project's before its organisation's, each in order of writing."""
        found: list[MemoryRecord] = []
        for project, embedder, wanted in self._conditions(place, condition, set_metadata):
            with self._handles.features(place.org, project, embedder) as memory:
                if len(found) < limit:
                    left = limit - len(found)
                    found += memory.list(filter=wanted, limit=left, offset=offset, order="written")
                offset = max(0, offset - memory.count(filter=wanted))
        return [feature_of(record) for record in found]

    def of_category(
        self,
        owner: SemanticSet,
        category: str,
        *,
        user: str | None,
        like: str = "",
        limit: int = MOST_IN_CATEGORY,
    ) -> list[Feature]:
        """Return the features of one category of one set, of one user alone.

        Args:
            owner: The set.
            category: The category's name.
            user: Their `user_id`; None for those that have none.
            like: Where there are more than `limit`, those that this text is about come first.
            limit: How many at most, in order of writing.
        """
        named = Comparison(MetadataField(feature_key("category")), "eq", category)
        whose = MetadataField(feature_key("user_id"))
        own = IsNull(whose) if user is None else Comparison(whose, "eq", user)
        condition = And((Comparison(Field("session"), "eq", owner.id), named, own))
        embedder = self._sets.with_models(owner).embedder or ""
        with self._handles.features(owner.org, owner.project, embedder) as memory:
            if not like.strip() or memory.count(filter=condition) <= limit:
                found = memory.list(filter=condition, limit=limit, order="written")
            else:
                found = [hit.memory for hit in memory.search(like, k=limit, filter=condition)]
        return [feature_of(record) for record in found]

    def delete_all(self, place: Place) -> None:
        """Forget every feature of a project's own sets, within `alone`."""
        for embedder in self._sets.embedders(place):
            with self._handles.features(*place.owner, embedder) as memory:
                memory.forget(filter="TRUE")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let nobody else change features until the block ends, which moves or forgets sets.

        Raises:
            StoreLocked: Others take too long.
        """
        with ExitStack() as turn:
            lock = turn.enter_context(closing(ReadWriteLock(self._moves, is_singleton=False)))
            _wait_for(turn, lock.write_lock(_LONGEST_WAIT))
            yield

    @contextmanager
    def _staying(self) -> Iterator[None]:
        """Let no set be moved or forgotten until the block ends, in which features change."""
        with ExitStack() as turn:
            lock = turn.enter_context(closing(ReadWriteLock(self._moves, is_singleton=False)))
            _wait_for(turn, lock.read_lock(_LONGEST_WAIT))
            yield

    def move(self, owner: SemanticSet, embedder: str) -> None:
        """Let another embedder read a set's features; they are where they were until all is there.

        Args:
            owner: The set, with the models that it uses.
            embedder: The name of the other one.
        """
        of_set = Comparison(Field("session"), "eq", owner.id)
        with (
            self._handles.features(owner.org, owner.project, owner.embedder or "") as old,
            self._handles.features(owner.org, owner.project, embedder) as new,
        ):
            # What a move that was killed has left there may be outdated.
            new.forget(filter=of_set)
            held = max(old.count(filter=of_set), 1)
            for each in old.list(filter=of_set, limit=held, order="written"):
                new.add(**_new_fields(owner, feature_of(each)), id=each.id, at=each.at)

    def forget_moved(self, owner: SemanticSet) -> None:
        """Forget a set's features where they were before `move`."""
        with self._handles.features(owner.org, owner.project, owner.embedder or "") as memory:
            memory.forget(filter=Comparison(Field("session"), "eq", owner.id))

    def _conditions(
        self, place: Place, condition: str, set_metadata: Mapping[str, object] | None
    ) -> Iterator[tuple[str | None, str, Filter]]:
        """Return what holds for the features that are meant, for each owner and embedder."""
        asked = read_filter(condition, metadata_key=feature_key)
        for (project, embedder), ids in self._sets.in_view(place, set_metadata).items():
            of_sets = In(Field("session"), tuple(ids))
            yield project, embedder, of_sets if asked is None else And((of_sets, asked))

    def _find(self, place: Place, feature_id: str) -> tuple[str | None, str, MemoryRecord]:
        used = {(each.project, each.id): each.embedder or "" for each in self._sets.known(place)}
        for project, embedder in product((place.project, None), sorted({"", *used.values()})):
            with self._handles.features(place.org, project, embedder) as memory:
                try:
                    found = memory.get(feature_id)
                except MemoryNotFound:
                    continue
            # Elsewhere may lie what a move that was killed has left.
            if used.get((project, found.session or ""), embedder) == embedder:
                return project, embedder, found
        raise NotThere("Feature not found")
