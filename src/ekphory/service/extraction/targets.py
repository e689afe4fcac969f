"""What an episode may tell something about: categories of sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ekphory.catalog.categories import Category, Tag
from ekphory.catalog.semantic_sets import SemanticSet
from ekphory.service.category_verbs import CategoryVerbs
from ekphory.service.extraction.profile import is_profile, tells_of_its_user, user_set
from ekphory.service.extraction.settings import Learnt
from ekphory.service.place import Place
from ekphory.service.set_verbs import SetVerbs
from ekphory.service.wire_names import shown_metadata
from ekphory.types import MemoryRecord

_PRODUCER = "producer_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One category of one set, for which an episode is read.

    Attributes:
        owner: The set.
        user: The user that the episode names; what is known of others is out of reach.
        category: What is to be learnt.
        tags: Under which headings.
    """

    owner: SemanticSet
    user: str | None
    category: Category
    tags: tuple[Tag, ...]


def said_about(record: MemoryRecord) -> dict[str, str]:
    """Give an episode's metadata; a user that its scope names is the `user_id`."""
    own = {} if record.user is None else {"user_id": record.user}
    return shown_metadata(record.metadata) | own


class Targets:
    """Finds the categories that an episode is read for."""

    def __init__(self, sets: SetVerbs, categories: CategoryVerbs, learnt: Learnt) -> None:
        self._sets = sets
        self._categories = categories
        self._learnt = learnt

    def of(self, place: Place, record: MemoryRecord) -> list[Target]:
        """Give the categories of all sets that an episode's metadata is about.

        An organisation's sets count where they were given categories, and whoever added the
        episode may change what is the organisation's.
        """
        metadata = {_PRODUCER: record.producer} | said_about(record)
        own = user_set(*place.owner, metadata) if self._hears(record) else None
        return [
            Target(
                owner=owner,
                user=metadata.get("user_id"),
                category=category,
                tags=tuple(self._categories.tags(category)),
            )
            for owner in self._owners(place, metadata, own)
            for category in self._categories.in_use(place, owner)
            # Of the sets that a message is about, one alone is its user's.
            if not is_profile(category) or owner == own
        ]

    def _owners(
        self, place: Place, metadata: Mapping[str, str], own: SemanticSet | None
    ) -> list[SemanticSet]:
        found = {(each.project, each.id): each for each in self._sets.listed(place, metadata)}
        if own is not None:
            found[own.project, own.id] = own
        reached = place.reach == "org"
        return [each for each in found.values() if each.project is not None or reached]

    def _hears(self, record: MemoryRecord) -> bool:
        return self._learnt == "profile" and tells_of_its_user(record.role)
