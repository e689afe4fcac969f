"""Semantic memory: features added, read, changed, found and deleted."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ekphory.catalog.failures import NotThere
from ekphory.catalog.semantic_sets import SemanticSet
from ekphory.errors import MemoryNotFound
from ekphory.filters.tree import And, Comparison, Field, Filter, In, IsNull, MetadataField
from ekphory.results import SearchResult
from ekphory.service.feature import Feature, feature_key, feature_of, memory_fields
from ekphory.service.handles import Handles
from ekphory.service.place import Place
from ekphory.service.semantic_names import check_reach
from ekphory.service.set_verbs import SetVerbs
from ekphory.service.wire_names import StoredNames, read_filter
from ekphory.types import Hit, MemoryRecord

MOST_IN_CATEGORY = 10_000
"""So many features of one category of one set are looked through."""
# No shared pool: a handle that is bound to a user, and to no project, must not see them.
_POOL = "agent_memory"
_ID_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureQuery:
    """Which features are meant.

    Attributes:
        filter: A condition in the filter grammar; a feature's own parts are `m.category`, `m.tag`
            and `m.feature_name`. Blank for none.
        set_metadata: What the sets are about; None for all that a project sees by itself.
    """

    filter: str = ""
    set_metadata: Mapping[str, object] | None = None


class Features:
    """The verbs of semantic memory."""

    def __init__(self, handles: Handles, sets: SetVerbs) -> None:
        self._handles = handles
        self._sets = sets

    def add(self, place: Place, feature: Feature) -> str:
        """Remember a feature; gives its id.

        Raises:
            InvalidInput: It cannot be stored.
            NotPermitted: Its set is the organisation's, and may not be changed from here.
        """
        owner = self._sets.for_writing(place, feature.set_id)
        # The tags of the set are the feature's too, so that a filter finds it by them.
        tagged = replace(feature, metadata={**owner.tags, **feature.metadata})
        feature_id = secrets.token_hex(_ID_BYTES)
        with self._handles.features(place.org, owner.project) as memory:
            memory.add(
                **memory_fields(tagged),
                id=feature_id,
                session=owner.id,
                pool=_POOL,
                type="semantic",
            )
        return feature_id

    def get(self, place: Place, feature_id: str) -> Feature:
        """Give a feature of the project or of its organisation.

        Raises:
            NotThere: There is none with that id.
        """
        return feature_of(self._find(place, feature_id)[1])

    def update(self, place: Place, feature_id: str, changes: Mapping[str, Any]) -> None:
        """Change some fields of a feature; the earlier version is kept as history.

        Args:
            place: From where it is changed.
            feature_id: Its id.
            changes: New values by the names in `Feature`.

        Raises:
            NotThere: There is none with that id.
        """
        project, record = self._find(place, feature_id)
        check_reach(place, project)
        before = feature_of(record)
        changed = replace(before, **changes)
        if "metadata" in changes:
            tags = self._sets.get(place, before.set_id).tags
            changed = replace(changed, metadata={**tags, **changed.metadata})
        with self._handles.features(place.org, project) as memory:
            memory.update(feature_id, **memory_fields(changed))

    def delete(self, place: Place, ids: Sequence[str]) -> None:
        """Forget features: all of them, or none where one of them is not there.

        Raises:
            NotThere: There is no such feature.
        """
        found: dict[str | None, list[str]] = {}
        for feature_id in ids:
            project, _ = self._find(place, feature_id)
            check_reach(place, project)
            found.setdefault(project, []).append(feature_id)
        for project, own in found.items():
            with self._handles.features(place.org, project) as memory:
                memory.forget(filter=In(Field("id"), tuple(own)))

    def search(
        self, place: Place, text: str, query: FeatureQuery, *, limit: int
    ) -> tuple[list[Feature], list[SearchResult]]:
        """Find the features that answer, the likeliest first; and what each search did."""
        results: list[SearchResult] = []
        for project, condition in self._conditions(place, query):
            with self._handles.features(place.org, project) as memory:
                results.append(memory.search(text, k=limit, filter=condition))
        hits = sorted((hit for each in results for hit in each), key=_by_score)
        return [feature_of(hit.memory) for hit in hits[:limit]], results

    def page(self, place: Place, query: FeatureQuery, *, limit: int, offset: int) -> list[Feature]:
        """Read features, the project's before its organisation's, each in order of writing."""
        found: list[MemoryRecord] = []
        for project, condition in self._conditions(place, query):
            with self._handles.features(place.org, project) as memory:
                if len(found) < limit:
                    left = limit - len(found)
                    found += memory.list(
                        filter=condition, limit=left, offset=offset, order="written"
                    )
                offset = max(0, offset - memory.count(filter=condition))
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
        """Give the features of one category of one set, of one user alone.

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
        with self._handles.features(owner.org, owner.project) as memory:
            if not like.strip() or memory.count(filter=condition) <= limit:
                found = memory.list(filter=condition, limit=limit, order="written")
            else:
                found = [hit.memory for hit in memory.search(like, k=limit, filter=condition)]
        return [feature_of(record) for record in found]

    def delete_all(self, place: Place) -> None:
        """Forget every feature of a project's own sets."""
        with self._handles.features(*place.owner) as memory:
            memory.forget(filter="TRUE")

    def _conditions(self, place: Place, query: FeatureQuery) -> Iterator[tuple[str | None, Filter]]:
        """Give what holds for the features that are meant, for each owner that has some."""
        asked = read_filter(query.filter, StoredNames(metadata_key=feature_key))
        for project, ids in self._sets.in_view(place, query.set_metadata).items():
            of_sets = In(Field("session"), tuple(ids))
            yield project, of_sets if asked is None else And((of_sets, asked))

    def _find(self, place: Place, feature_id: str) -> tuple[str | None, MemoryRecord]:
        for project in (place.project, None):
            with self._handles.features(place.org, project) as memory:
                try:
                    return project, memory.get(feature_id)
                except MemoryNotFound:
                    continue
        raise NotThere("Feature not found")


def _by_score(hit: Hit) -> float:
    return -hit.score
