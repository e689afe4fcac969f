"""The verbs of semantic sets and set types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from ekphory.catalog.failures import NotThere
from ekphory.catalog.semantic_sets import SemanticSet, SemanticSets, SetType
from ekphory.service.models import ServiceModels
from ekphory.service.place import Place
from ekphory.service.semantic_names import check_reach, check_set_id, is_about, set_of, texts

Level = Literal["org", "project"]
"""Whether something is shared by an organisation, or of one project."""


class SetVerbs:
    """Semantic sets and their types, as seen from a project."""

    def __init__(self, sets: SemanticSets, models: ServiceModels) -> None:
        self._sets = sets
        self._models = models

    def add_type(
        self,
        place: Place,
        tags: Sequence[str],
        *,
        level: Level = "project",
        name: str | None = None,
        description: str | None = None,
    ) -> str:
        """Add a set type whose sets are told apart by these metadata keys; gives its id.

        Raises:
            NotPermitted: It would be the organisation's, and may not be changed from here.
        """
        project = _project(place, level)
        check_reach(place, project)
        return self._sets.add_type((place.org, project), tags, name=name, description=description)

    def types(self, place: Place) -> list[SetType]:
        """Give the set types that a project may use."""
        return self._sets.types(*place.owner)

    def type(self, place: Place, type_id: str) -> SetType:
        """Give one of `types`.

        Raises:
            NotThere: None of them has that id.
        """
        return self._sets.get_type(*place.owner, type_id)

    def delete_type(self, place: Place, type_id: str) -> None:
        """Remove a set type with its category templates; its sets and their features stay."""
        check_reach(place, self.type(place, type_id).project)
        self._sets.delete_type(type_id)

    def name_of(
        self,
        place: Place,
        keys: Sequence[str],
        metadata: Mapping[str, object] | None,
        *,
        level: Level = "project",
    ) -> str:
        """Give the id of the set for these metadata keys and values; known from then on."""
        given = texts(metadata)
        tags = {key: given[key] for key in keys if key in given}
        found = set_of(place.org, _project(place, level), tags)
        check_set_id(found.id)
        if found.project is not None or place.reach == "org":
            self.make_known(found)
        return found.id

    def make_known(self, semantic_set: SemanticSet) -> None:
        """Let a set be listed and searched, with its tags; one that is known stays as it is."""
        self._sets.register(semantic_set)

    def known(self, place: Place) -> list[SemanticSet]:
        """Give the sets that have been used, a project's and its organisation's."""
        return self._sets.sets(*place.owner)

    def listed(self, place: Place, metadata: Mapping[str, object] | None) -> list[SemanticSet]:
        """Give the sets that there are, used or not.

        Args:
            place: From where they are seen.
            metadata: Only sets that are about it, and those of the types that it has the tags of;
                None for all that are known.
        """
        given = texts(metadata)
        found = [each for each in self.known(place) if metadata is None or is_about(each, given)]
        for each in self.types(place):
            if set(each.tags) <= given.keys():
                tags = {tag: given[tag] for tag in each.tags}
                found.append(set_of(place.org, each.project, tags))
        found += [set_of(place.org, None, {}), set_of(*place.owner, {})]
        distinct = {(each.project, each.id): each for each in reversed(found)}
        return list(reversed(distinct.values()))

    def in_view(
        self, place: Place, metadata: Mapping[str, object] | None
    ) -> dict[str | None, list[str]]:
        """Give the ids of the sets that a search looks into, by owner, the project's own first.

        Without metadata these are all of the project's, and the organisation's that are about no
        one in particular; with metadata, all that are about nothing else.
        """
        given = texts(metadata)
        found: dict[str | None, list[str]] = {place.project: [], None: []}
        for each in self.known(place):
            everything = metadata is None and each.project is not None
            if everything or is_about(each, given):
                found[each.project].append(each.id)
        return {project: ids for project, ids in found.items() if ids}

    def for_writing(self, place: Place, set_id: str) -> SemanticSet:
        """Give the set of that id; one that is not known becomes the project's.

        Raises:
            NotPermitted: It is the organisation's, and may not be changed from here.
            InvalidInput: The id cannot be one.
        """
        check_set_id(set_id)
        new = SemanticSet(id=set_id, org=place.org, project=place.project)
        found = self._find(place, set_id) or new
        check_reach(place, found.project)
        self._sets.register(found)
        return found

    def get(self, place: Place, set_id: str) -> SemanticSet:
        """Give a set that is known, or one that always is.

        Raises:
            NotThere: There is none of that id.
        """
        found = self._find(place, set_id)
        if found is None:
            raise NotThere("Set does not exist")
        return found

    def configure(
        self, place: Place, set_id: str, *, embedder: str | None, llm: str | None
    ) -> None:
        """Say which models a set is to use.

        Raises:
            NotThere: There is no such set.
            InvalidInput: There is no such model.
        """
        self._models.check_names(embedder=embedder or "", llm=llm or "")
        found = self.get(place, set_id)
        check_reach(place, found.project)
        self._sets.register(found)
        self._sets.configure(found, embedder=embedder, llm=llm)

    def _find(self, place: Place, set_id: str) -> SemanticSet | None:
        for project in (place.project, None):
            found = self._sets.find(place.org, project, set_id)
            always = set_of(place.org, project, {})
            if found is not None or always.id == set_id:
                return found or always
        return None


def _project(place: Place, level: Level) -> str | None:
    return None if level == "org" else place.project
