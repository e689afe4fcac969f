"""Features as a scope sees them: those of its project, and of no user but its own."""

from __future__ import annotations

from collections.abc import Sequence

from ekphory.catalog.failures import NotThere
from ekphory.filters.formatting import format_filter
from ekphory.filters.tree import Comparison, IsNull, MetadataField, Or
from ekphory.scope import Scope
from ekphory.service.feature import Feature
from ekphory.service.features import FeatureQuery
from ekphory.service.memory_service import MemoryService
from ekphory.service.place import Place

_USER_KEY = "user_id"


class ProjectFeatures:
    """The features of one store, seen from scopes that are bound to a project."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    def search(self, scope: Scope, text: str, *, limit: int) -> list[Feature]:
        """Find the features that answer; none where the scope is no project's."""
        place = _place(scope)
        if place is None:
            return []
        query = FeatureQuery(filter=_of_user(scope), set_metadata=_about(scope))
        found, _ = self._service.features.search(place, text, query, limit=limit)
        return found

    def delete(self, scope: Scope, ids: Sequence[str]) -> None:
        """Forget features: all of them, or none where one of them is not there.

        Raises:
            NotThere: The scope sees no such feature.
            NotPermitted: It is the whole organisation's.
        """
        place = _place(scope)
        if place is None or not all(self._sees(scope, place, each) for each in ids):
            raise NotThere("Feature not found")
        self._service.features.delete(place, ids)

    def learn_from(self, scope: Scope, episodes: Sequence[str]) -> None:
        """Hand over what was added, to be learnt from where a language model is configured."""
        place = _place(scope)
        if place is not None:
            self._service.extraction.learn_from(place, episodes)

    def _sees(self, scope: Scope, place: Place, feature_id: str) -> bool:
        feature = self._service.features.get(place, feature_id)
        sets = self._service.sets.in_view(place, _about(scope)).values()
        in_view = any(feature.set_id in ids for ids in sets)
        of_others = scope.user is not None and feature.metadata.get(_USER_KEY) not in (
            None,
            scope.user,
        )
        return in_view and not of_others


def _place(scope: Scope) -> Place | None:
    """Give the project of a scope; features belong to no agent and no session."""
    bound_closer = scope.agent is not None or scope.session is not None
    if scope.org is None or scope.project is None or bound_closer:
        return None
    return Place(scope.org, scope.project, "project")


def _about(scope: Scope) -> dict[str, object] | None:
    """Give what the sets must be about that a scope sees; None for any."""
    return None if scope.user is None else {_USER_KEY: scope.user, "producer_id": scope.user}


def _of_user(scope: Scope) -> str:
    """Give the condition that features fulfil which a scope sees."""
    if scope.user is None:
        return ""
    user = MetadataField(_USER_KEY)
    return format_filter(Or((Comparison(user, "eq", scope.user), IsNull(user))))
