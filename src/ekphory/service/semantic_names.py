"""How semantic sets are named, and which of them some metadata is about."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ekphory.catalog.failures import NotPermitted
from ekphory.catalog.semantic_sets import SemanticSet
from ekphory.errors import InvalidInput
from ekphory.filters.storable_text import is_storable
from ekphory.scope import LONGEST_NAME
from ekphory.service.feature import as_text
from ekphory.service.place import Place

_USER_TAGS = {"producer_id"}


def texts(metadata: Mapping[str, object] | None) -> dict[str, str]:
    """Give metadata as texts, without what is null."""
    given = metadata or {}
    return {key: as_text(value) for key, value in given.items() if value is not None}


def set_of(org: str, project: str | None, tags: Mapping[str, str]) -> SemanticSet:
    """Give the set that belongs to these tags; the same tags always have the same set.

    Args:
        org: The organisation.
        project: The project; None for a set of the whole organisation.
        tags: Metadata that tells it from the other sets; none for the one that is about all.
    """
    owner = f"org_{org}" if project is None else f"org_{org}_project_{project}"
    joined = "_".join(sorted(f"{key}_{value}" for key, value in tags.items()))
    name = f"mem_{_kind(project, tags)}_{owner}_{len(tags)}_{_digest(tags)}__{joined}"
    return SemanticSet(id=name, org=org, project=project, tags=dict(tags))


def is_about(semantic_set: SemanticSet, metadata: Mapping[str, str]) -> bool:
    """Whether all tags of a set have the values that the metadata has."""
    return all(metadata.get(key) == value for key, value in semantic_set.tags.items())


def check_reach(place: Place, project: str | None) -> None:
    """Check that something of this owner may be changed from a place.

    Raises:
        NotPermitted: It is the whole organisation's, and the caller is bound to a project.
    """
    if project is None and place.reach == "project":
        raise NotPermitted(
            "This belongs to the whole organisation, and the key is bound to one project. "
            "Use a key of the organisation."
        )


def check_set_id(set_id: str) -> None:
    """Check that features can be kept under the id of a set.

    Raises:
        InvalidInput: It is blank, too long, or cannot be stored.
    """
    if not set_id.strip() or len(set_id) > LONGEST_NAME or not is_storable(set_id):
        raise InvalidInput(
            "set_id",
            set_id,
            "cannot name a set",
            f"Give 1 to {LONGEST_NAME:,} characters without NUL",
        )


def _kind(project: str | None, tags: Mapping[str, str]) -> str:
    if not tags:
        return "org_set" if project is None else "project_set"
    return "user_set" if set(tags) == _USER_TAGS else "other_set"


def _digest(tags: Mapping[str, str]) -> str:
    """Give a short digest of tags and values: joined by `_`, other tags may read the same."""
    parts = [part for item in sorted(tags.items()) for part in item]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()
