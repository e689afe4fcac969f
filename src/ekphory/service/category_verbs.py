"""The verbs of categories, templates and tags."""

from __future__ import annotations

from dataclasses import dataclass

from ekphory.catalog.categories import Categories, Category, Tag
from ekphory.catalog.failures import NotThere
from ekphory.catalog.semantic_sets import SemanticSet
from ekphory.service.extraction.profile import PROFILE_TAGS, is_profile, profile_of
from ekphory.service.place import Place
from ekphory.service.semantic_names import check_reach
from ekphory.service.set_verbs import SetVerbs


@dataclass(frozen=True, slots=True)
class CategoryText:
    """What a caller says about a category: its name, how to learn it, and what it is."""

    name: str
    prompt: str
    description: str | None = None


class CategoryVerbs:
    """Categories of sets, templates of set types, and tags, as seen from a project."""

    def __init__(self, categories: Categories, sets: SetVerbs) -> None:
        self._categories = categories
        self._sets = sets

    def add(self, place: Place, set_id: str, text: CategoryText) -> str:
        """Add a category to a set; gives its id.

        Raises:
            AlreadyThere: The set has one of that name.
        """
        owner = self._sets.for_writing(place, set_id)
        return self._categories.add(
            Category(
                org=owner.org,
                project=owner.project,
                set_id=owner.id,
                name=text.name,
                prompt=text.prompt,
                description=text.description,
            )
        )

    def add_template(self, place: Place, set_type_id: str, text: CategoryText) -> str:
        """Add a category that all sets of a type have; gives its id.

        Raises:
            NotThere: There is no such type.
            AlreadyThere: The type has one of that name.
        """
        owner = self._sets.type(place, set_type_id)
        check_reach(place, owner.project)
        return self._categories.add(
            Category(
                org=owner.org,
                project=owner.project,
                set_type_id=owner.id,
                name=text.name,
                prompt=text.prompt,
                description=text.description,
            )
        )

    def templates(self, place: Place, set_type_id: str) -> list[Category]:
        """Give the templates of a set type."""
        return self._categories.templates(self._sets.type(place, set_type_id).id)

    def get(self, place: Place, category_id: str) -> Category:
        """Give a category or template."""
        return self._categories.get(*place.owner, category_id)

    def delete(self, place: Place, category_id: str) -> None:
        """Remove a category or template with its tags."""
        self._categories.delete(self._changeable(place, category_id))

    def set_ids(self, place: Place, category_id: str) -> list[str]:
        """Give the sets that have a category, by themselves or through their type."""
        category = self.get(place, category_id)
        if category.set_id is not None:
            return [category.set_id]
        owner = self._sets.type(place, category.set_type_id or "")
        return [each.id for each in self._sets.known(place) if owner.covers(each)]

    def disable(self, place: Place, set_id: str, name: str) -> None:
        """Switch a category off for one set.

        Raises:
            NotThere: There is no such set, or it has no such category.
        """
        found = self._sets.get(place, set_id)
        if name not in {each.name for each in self._all_of(place, found)}:
            raise NotThere("The set has no such category")
        owner = self._sets.for_writing(place, set_id)
        self._categories.disable((owner.org, owner.project), owner.id, name)

    def in_use(self, place: Place, owner: SemanticSet) -> list[Category]:
        """Give the categories of a set, without those that are switched off."""
        off = self._categories.disabled((owner.org, owner.project), owner.id)
        return [each for each in self._all_of(place, owner) if each.name not in off]

    def tags(self, category: Category) -> list[Tag]:
        """Give the tags of a category; with none, its features may have any."""
        return list(PROFILE_TAGS) if is_profile(category) else self._categories.tags(category)

    def add_tag(self, place: Place, category_id: str, name: str, description: str) -> str:
        """Add a tag to a category; gives its id.

        Raises:
            AlreadyThere: The category has one of that name.
        """
        return self._categories.add_tag(self._changeable(place, category_id), name, description)

    def delete_tag(self, place: Place, tag_id: str) -> None:
        """Remove a tag."""
        check_reach(place, self._categories.category_of_tag(*place.owner, tag_id).project)
        self._categories.delete_tag(tag_id)

    def _changeable(self, place: Place, category_id: str) -> Category:
        category = self.get(place, category_id)
        check_reach(place, category.project)
        return category

    def _all_of(self, place: Place, owner: SemanticSet) -> list[Category]:
        """Give a set's own categories, those of its types, and a user's profile; one a name."""
        found = self._categories.of_set(owner.org, owner.project, owner.id)
        for kind in self._sets.types(place):
            if kind.covers(owner):
                found += self._categories.templates(kind.id)
        profile = profile_of(owner)
        distinct = {each.name: each for each in reversed([*found, *([profile] if profile else [])])}
        return list(reversed(distinct.values()))
