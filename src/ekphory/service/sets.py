"""Semantic sets, their types and categories, as seen from a project."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files

from ekphory.catalog.database import Database, NotPermitted, NotThere, Value
from ekphory.errors import InvalidInput
from ekphory.scope import LONGEST_NAME
from ekphory.service.handles import Place
from ekphory.types import is_storable

# Semantic sets and their types.


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticSet:
    """One group of features.

    Attributes:
        id: Its name, which follows from its tags unless a caller chose it.
        project: Whose it is; None for the whole organisation's.
        tags: The metadata that its features are about, such as `{"user_id": "mara"}`.
        embedder, llm: Names of the models that are used for it; None for the service's own.
    """

    id: str
    org: str
    project: str | None
    tags: Mapping[str, str] = field(default_factory=dict)
    embedder: str | None = None
    llm: str | None = None

    @property
    def is_org_level(self) -> bool:
        """Whether it is the whole organisation's."""
        return self.project is None

    @property
    def key(self) -> tuple[str, str | None, str]:
        """Organisation, project and id, by which the tables know it."""
        return self.org, self.project, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class SetType:
    """A way of grouping features: one set for each combination of values of its tags.

    Attributes:
        id: Its number, as text.
        project: Whose it is; None for the whole organisation's.
        tags: The metadata keys that tell its sets apart.
        name, description: In its owner's words.
    """

    id: str
    org: str
    project: str | None
    tags: tuple[str, ...]
    name: str | None = None
    description: str | None = None

    @property
    def is_org_level(self) -> bool:
        """Whether it is the whole organisation's."""
        return self.project is None

    def covers(self, semantic_set: SemanticSet) -> bool:
        """Whether a set is one of this type's: of the same owner, told apart by the same keys."""
        same_owner = (self.org, self.project) == (semantic_set.org, semantic_set.project)
        return same_owner and set(self.tags) == set(semantic_set.tags)


# How semantic sets are named, and which of them some metadata is about.

_USER_TAGS = {"producer_id"}


def texts(metadata: Mapping[str, object] | None) -> dict[str, str]:
    """Return metadata as texts, without what is null."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in (metadata or {}).items()
        if value is not None
    }


def set_of(org: str, project: str | None, tags: Mapping[str, str]) -> SemanticSet:
    """Return the set that belongs to these tags; the same tags always have the same set.

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
            "This belongs to the whole organisation, and may not be changed from here. Use a key "
            "that is not bound to one project; a cluster has nothing of whole organisations."
        )


def check_set_id(set_id: str) -> None:
    """Check that features can be kept under the id of a set.

    Raises:
        InvalidInput: It is blank, too long, or cannot be stored.
    """
    if not set_id.strip() or len(set_id) > LONGEST_NAME or not is_storable(set_id):
        problem = f"must be 1 to {LONGEST_NAME:,} characters without NUL"
        raise InvalidInput("set_id", set_id, problem, "Give the id of a set")


def _kind(project: str | None, tags: Mapping[str, str]) -> str:
    if not tags:
        return "org_set" if project is None else "project_set"
    return "user_set" if set(tags) == _USER_TAGS else "other_set"


def _digest(tags: Mapping[str, str]) -> str:
    """Return a short digest of tags and values: joined by `_`, other tags may read the same."""
    parts = [part for item in sorted(tags.items()) for part in item]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()


class SemanticSets:
    """Semantic sets and their types, as seen from a project."""

    def __init__(self, database: Database, new_embedder: Callable[[], str] = str) -> None:
        """Take the tables, and what says which embedder a new set is bound to."""
        self._database = database
        self._new_embedder = new_embedder

    def add_type(
        self,
        place: Place,
        tags: Sequence[str],
        *,
        is_org_level: bool = False,
        name: str | None = None,
        description: str | None = None,
    ) -> str:
        """Add a set type whose sets are told apart by these metadata keys; return its id.

        Raises:
            NotPermitted: It would be the organisation's, and may not be changed from here.
        """
        project = None if is_org_level else place.project
        check_reach(place, project)
        row = {
            "org": place.org,
            "project": project,
            "tags": json.dumps(list(tags)),
            "name": name,
            "description": description,
        }
        return _insert(self._database, "set_types", row)

    def types(self, place: Place) -> list[SetType]:
        """Return the set types that a project may use."""
        rows = self._database.read(
            "SELECT * FROM set_types WHERE org = ? AND ifnull(project, ?2) = ?2 ORDER BY id",
            place.owner,
        )
        return [
            SetType(**{**row, "id": str(row["id"]), "tags": tuple(json.loads(row["tags"]))})
            for row in rows
        ]

    def type(self, place: Place, type_id: str) -> SetType:
        """Return one of `types`.

        Raises:
            NotThere: None of them has that id.
        """
        found = next((each for each in self.types(place) if each.id == type_id), None)
        if found is None:
            raise NotThere("Set type does not exist")
        return found

    def delete_type(self, place: Place, type_id: str) -> None:
        """Remove a set type with its category templates; its sets and their features stay."""
        check_reach(place, self.type(place, type_id).project)
        self._database.write("DELETE FROM set_types WHERE id = ?", (type_id,))

    def name_of(
        self,
        place: Place,
        keys: Sequence[str],
        metadata: Mapping[str, object] | None,
        *,
        is_org_level: bool = False,
    ) -> str:
        """Return the id of the set for these metadata keys and values; known from then on."""
        given = texts(metadata)
        tags = {key: given[key] for key in keys if key in given}
        found = set_of(place.org, None if is_org_level else place.project, tags)
        check_set_id(found.id)
        if found.project is not None or place.reach == "org":
            self.make_known(found)
        return found.id

    def make_known(self, semantic_set: SemanticSet) -> None:
        """Let a set be listed and searched, with its tags; one that is known stays as it is."""
        if self._find(semantic_set.key) is None:
            bound = semantic_set.embedder or self._new_embedder() or None
            tags = json.dumps(dict(semantic_set.tags))
            row = {**asdict(semantic_set), "tags": tags, "embedder": bound}
            self._database.insert_new("semantic_sets", [row])

    def with_models(self, semantic_set: SemanticSet) -> SemanticSet:
        """Return a set with the models that it uses, or would if it were used."""
        known = self._find(semantic_set.key)
        return known or replace(semantic_set, embedder=self._new_embedder() or None)

    def embedders(self, place: Place) -> list[str]:
        """Return the names of the embedders that sets in view use, the service's own as empty."""
        return sorted({"", *(each.embedder or "" for each in self.known(place))})

    def known(self, place: Place) -> list[SemanticSet]:
        """Return the sets that have been used, a project's and its organisation's."""
        rows = self._database.read(
            "SELECT * FROM semantic_sets WHERE org = ? AND ifnull(project, ?2) = ?2 ORDER BY rowid",
            place.owner,
        )
        return list(map(_read_set, rows))

    def listed(self, place: Place, metadata: Mapping[str, object] | None) -> list[SemanticSet]:
        """Return the sets that there are, used or not.

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
    ) -> dict[tuple[str | None, str], list[str]]:
        """Return the ids of the sets that a search looks into, the project's own first.

        They are by owner, and by the name of the embedder, which is empty for the service's own.

        Without metadata these are all of the project's, and the organisation's that are about no
        one in particular; with metadata, all that are about nothing else.
        """
        given = texts(metadata)
        found: dict[tuple[str | None, str], list[str]] = {}
        for each in sorted(self.known(place), key=lambda known: known.is_org_level):
            everything = metadata is None and each.project is not None
            if everything or is_about(each, given):
                found.setdefault((each.project, each.embedder or ""), []).append(each.id)
        return found

    def for_writing(self, place: Place, set_id: str) -> SemanticSet:
        """Return the set of that id; one that is not known becomes the project's.

        Raises:
            NotPermitted: It is the organisation's, and may not be changed from here.
            InvalidInput: The id cannot be one.
        """
        check_set_id(set_id)
        new = SemanticSet(id=set_id, org=place.org, project=place.project)
        found = self._find_or_make(place, set_id) or new
        check_reach(place, found.project)
        self.make_known(found)
        return self.with_models(found)

    def get(self, place: Place, set_id: str) -> SemanticSet:
        """Return a set that is known, or one that always is.

        Raises:
            NotThere: There is none of that id.
        """
        found = self._find_or_make(place, set_id)
        if found is None:
            raise NotThere("Set does not exist")
        return found

    def configure(self, known: SemanticSet, *, embedder: str | None, llm: str | None) -> None:
        """Say which models a known set is to use; None leaves one as it is."""
        self._database.write(
            "UPDATE semantic_sets SET embedder = ifnull(?, embedder), llm = ifnull(?, llm) "
            "WHERE org = ? AND project IS ? AND id = ?",
            (embedder, llm, *known.key),
        )

    def _find(self, key: tuple[str, str | None, str]) -> SemanticSet | None:
        rows = self._database.read(
            "SELECT * FROM semantic_sets WHERE org = ? AND project IS ? AND id = ?", key
        )
        return _read_set(rows[0]) if rows else None

    def _find_or_make(self, place: Place, set_id: str) -> SemanticSet | None:
        for project in (place.project, None):
            found = self._find((place.org, project, set_id))
            always = set_of(place.org, project, {})
            if found is not None or always.id == set_id:
                return found or always
        return None


def _read_set(row: sqlite3.Row) -> SemanticSet:
    return SemanticSet(**{**row, "tags": json.loads(row["tags"])})


# Categories.


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """What is to be learnt about a set.

    Attributes:
        id: Its number, as text; empty where nobody added it.
        org, project: Whose it is; a project of None is the whole organisation's.
        set_id, set_type_id: The set it belongs to, or the type it is a template of; one is None.
        name: Unique within its set or type.
        prompt: How to learn it from messages.
        description: In its owner's words.
    """

    id: str = ""
    org: str
    project: str | None
    set_id: str | None = None
    set_type_id: str | None = None
    name: str
    prompt: str
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """One heading under which a category keeps features, and what belongs there."""

    name: str
    description: str


# The category that needs nobody to add it: a profile of each user.

PROFILE_NAME = "profile"
USER_KEYS = ("user_id", "producer_id")
"""The metadata that says whose profile it is; the first that a message has."""
_UNHEARD_ROLES = frozenset({"assistant", "system", "tool"})
"""What these say is not evidence about a user."""
_PROFILE = tomllib.loads(files(__package__).joinpath("profile.toml").read_text("utf-8"))
PROFILE_TAGS = tuple(Tag(name=name, description=text) for name, text in _PROFILE["tags"].items())


def user_set(org: str, project: str, metadata: Mapping[str, str]) -> SemanticSet | None:
    """Return the set that holds the profile of a message's user; None where it names none.

    It is the project's own, so that no other project learns of it.
    """
    for key in USER_KEYS:
        if metadata.get(key):
            return set_of(org, project, {key: metadata[key]})
    return None


def profile_of(owner: SemanticSet) -> Category | None:
    """Return the category that a set has by itself; None where it is not a user's."""
    if owner.project is None or len(owner.tags) != 1 or not set(owner.tags) <= set(USER_KEYS):
        return None
    return Category(
        org=owner.org,
        project=owner.project,
        set_id=owner.id,
        name=PROFILE_NAME,
        prompt=_PROFILE["prompt"],
    )


def is_profile(category: Category) -> bool:
    """Whether a category is the one that sets have by themselves."""
    return not category.id


def tells_of_its_user(role: str) -> bool:
    """Whether what is said in a chat role may tell something about the user."""
    return role.lower() not in _UNHEARD_ROLES


# The verbs of categories, templates and tags.

_CATEGORIES = (
    "SELECT CAST(id AS TEXT) AS id, org, project, set_id, "
    "CAST(set_type_id AS TEXT) AS set_type_id, name, prompt, description FROM categories"
)
_IN_VIEW = "org = ? AND ifnull(project, ?2) = ?2"
"""Holds for what is the project's or its whole organisation's."""


class Categories:
    """Categories of sets, templates of set types, and tags, as seen from a project."""

    def __init__(self, database: Database, sets: SemanticSets) -> None:
        self._database = database
        self._sets = sets

    def add(
        self, place: Place, set_id: str, name: str, *, prompt: str, description: str | None = None
    ) -> str:
        """Add a category to a set, and return its id.

        Raises:
            AlreadyThere: The set has one of that name.
        """
        owner = self._sets.for_writing(place, set_id)
        row = {"set_id": owner.id, "name": name, "prompt": prompt, "description": description}
        row |= {"org": owner.org, "project": owner.project}
        return _insert(self._database, "categories", row)

    def add_template(
        self, place: Place, type_id: str, name: str, *, prompt: str, description: str | None = None
    ) -> str:
        """Add a category that all sets of a type have, and return its id.

        Raises:
            NotThere: There is no such type.
            AlreadyThere: The type has one of that name.
        """
        owner = self._sets.type(place, type_id)
        check_reach(place, owner.project)
        row = {"set_type_id": owner.id, "name": name, "prompt": prompt, "description": description}
        row |= {"org": owner.org, "project": owner.project}
        return _insert(self._database, "categories", row)

    def templates(self, place: Place, set_type_id: str) -> list[Category]:
        """Return the templates of a set type."""
        return self._where("set_type_id = ?", (self._sets.type(place, set_type_id).id,))

    def get(self, place: Place, category_id: str) -> Category:
        """Return a category or template of a project or of its whole organisation.

        Raises:
            NotThere: There is none with that id.
        """
        found = self._where(f"{_IN_VIEW} AND id = ?3", (*place.owner, _number(category_id)))
        if not found:
            raise NotThere("Category not found")
        return found[0]

    def delete(self, place: Place, category_id: str) -> None:
        """Remove a category or template with its tags."""
        owner = self._changeable(place, category_id)
        self._database.write("DELETE FROM categories WHERE id = ?", (owner.id,))

    def set_ids(self, place: Place, category_id: str) -> list[str]:
        """Return the sets that have a category, by themselves or through their type."""
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
        row = {"org": owner.org, "project": owner.project, "set_id": owner.id, "name": name}
        self._database.insert_new("disabled_categories", [row])

    def in_use(self, place: Place, owner: SemanticSet) -> list[Category]:
        """Return the categories of a set, without those that are switched off."""
        rows = self._database.read(
            "SELECT name FROM disabled_categories WHERE org = ? AND project IS ? AND set_id = ?",
            owner.key,
        )
        off = {row["name"] for row in rows}
        return [each for each in self._all_of(place, owner) if each.name not in off]

    def tags(self, category: Category) -> list[Tag]:
        """Return the tags of a category; with none, its features may have any."""
        if is_profile(category):
            return list(PROFILE_TAGS)
        rows = self._database.read(
            "SELECT name, description FROM tags WHERE category_id = ? ORDER BY id", (category.id,)
        )
        return [Tag(**row) for row in rows]

    def add_tag(self, place: Place, category_id: str, name: str, description: str) -> str:
        """Add a tag to a category, and return its id.

        Raises:
            AlreadyThere: The category has one of that name.
        """
        owner = self._changeable(place, category_id)
        row = {"category_id": owner.id, "name": name, "description": description}
        return _insert(self._database, "tags", row)

    def delete_tag(self, place: Place, tag_id: str) -> None:
        """Remove a tag.

        Raises:
            NotThere: There is no such tag.
        """
        found = self._where(
            _IN_VIEW + " AND id = (SELECT category_id FROM tags WHERE id = ?3)",  # noqa: S608  fixed text
            (*place.owner, _number(tag_id)),
        )
        if not found:
            raise NotThere("Tag not found")
        check_reach(place, found[0].project)
        self._database.write("DELETE FROM tags WHERE id = ?", (tag_id,))

    def _changeable(self, place: Place, category_id: str) -> Category:
        category = self.get(place, category_id)
        check_reach(place, category.project)
        return category

    def _all_of(self, place: Place, owner: SemanticSet) -> list[Category]:
        """Return a set's own categories, those of its types, and a user's profile; one a name."""
        found = self._where("org = ? AND project IS ? AND set_id = ?", owner.key)
        for kind in self._sets.types(place):
            if kind.covers(owner):
                found += self._where("set_type_id = ?", (kind.id,))
        profile = profile_of(owner)
        distinct = {each.name: each for each in reversed([*found, *([profile] if profile else [])])}
        return list(reversed(distinct.values()))

    def _where(self, condition: str, values: Sequence[Value]) -> list[Category]:
        statement = f"{_CATEGORIES} WHERE {condition} ORDER BY categories.id"
        return [Category(**row) for row in self._database.read(statement, values)]


def _insert(database: Database, table: str, row: Mapping[str, Value]) -> str:
    """Add a row, and return its id: later than those before, and that of no row elsewhere.

    Rows of several catalogs come together where the shards of a cluster change.
    """
    number = time.time_ns() // 1000 * _A_MICROSECOND + secrets.randbelow(_A_MICROSECOND)
    return str(database.insert(table, {**row, "id": number}))


_A_MICROSECOND = 100
"""So many ids there are in each."""


def _number(text: str) -> int:
    """Return the number that an id is; 0, which no row has, where it is none."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 19
    return int(text) if is_number else 0
