"""Semantic memory: features, and the sets and categories that order them."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ekphory.catalog.database import NotPermitted, NotThere
from ekphory.catalog.semantic import Categories, Category, SemanticSet, SemanticSets, SetType, Tag
from ekphory.errors import InvalidInput, MemoryNotFound
from ekphory.filters.tree import And, Comparison, Field, Filter, In, IsNull, MetadataField
from ekphory.scope import LONGEST_NAME
from ekphory.search import SearchResult
from ekphory.service.episodes import (
    read_filter,
    shown_metadata,
    stored_key,
    stored_metadata,
)
from ekphory.service.handles import Handles, Place, ServiceModels
from ekphory.types import MemoryRecord, is_storable

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
    return {
        "text": _lead(feature.name) + feature.value,
        "metadata": stored_metadata(feature.metadata) | dict(zip(_OWN_KEYS, own, strict=True)),
    }


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
            f"must be 1 to {LONGEST_NAME:,} characters without NUL",
            "Give the id of a set",
        )


def _kind(project: str | None, tags: Mapping[str, str]) -> str:
    if not tags:
        return "org_set" if project is None else "project_set"
    return "user_set" if set(tags) == _USER_TAGS else "other_set"


def _digest(tags: Mapping[str, str]) -> str:
    """Return a short digest of tags and values: joined by `_`, other tags may read the same."""
    parts = [part for item in sorted(tags.items()) for part in item]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()


# The verbs of semantic sets and set types.

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
        """Add a set type whose sets are told apart by these metadata keys; return its id.

        Raises:
            NotPermitted: It would be the organisation's, and may not be changed from here.
        """
        project = _project(place, level)
        check_reach(place, project)
        return self._sets.add_type((place.org, project), tags, name=name, description=description)

    def types(self, place: Place) -> list[SetType]:
        """Return the set types that a project may use."""
        return self._sets.types(*place.owner)

    def type(self, place: Place, type_id: str) -> SetType:
        """Return one of `types`.

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
        """Return the id of the set for these metadata keys and values; known from then on."""
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
        """Return the sets that have been used, a project's and its organisation's."""
        return self._sets.sets(*place.owner)

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
    ) -> dict[str | None, list[str]]:
        """Return the ids of the sets that a search looks into, by owner, the project's own first.

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
        """Return the set of that id; one that is not known becomes the project's.

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
        """Return a set that is known, or one that always is.

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


# The verbs of features.

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
        """Remember a feature, and return its id.

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
        """Return a feature of the project or of its organisation.

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
        hits = sorted((hit for each in results for hit in each), key=lambda hit: -hit.score)
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
        """Return what holds for the features that are meant, for each owner that has some."""
        asked = read_filter(query.filter, metadata_key=feature_key)
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


# The category that needs nobody to add it: a profile of each user.

PROFILE_NAME = "profile"
_USER_KEYS = ("user_id", "producer_id")
"""The metadata that says whose profile it is; the first that a message has."""
_UNHEARD_ROLES = frozenset({"assistant", "system", "tool"})
"""What these say is not evidence about a user."""
_PROMPT = (
    "What is worth knowing about the user in later conversations: who they are, how they live and "
    "work, what they like, want, plan and can do. Only what concerns the user, or people and "
    "things close to them; no passing small talk, no general knowledge, no secrets such as "
    "passwords or keys."
)
PROFILE_TAGS = (
    Tag(name="identity", description="name, age, gender, origin, languages, appearance"),
    Tag(name="health", description="conditions, allergies, diet, sleep, fitness"),
    Tag(name="home", description="where and how they live, pets, possessions"),
    Tag(name="people", description="family, partner, friends, colleagues, and how they get on"),
    Tag(name="work", description="job, employer, studies, projects, income"),
    Tag(name="skills", description="what they know or can do, and how well"),
    Tag(name="interests", description="hobbies, sports, music, books, subjects they follow"),
    Tag(name="preferences", description="likes, dislikes, tastes, favourites"),
    Tag(name="habits", description="what they do regularly, and when"),
    Tag(name="plans", description="goals, appointments, wishes, decisions, with their dates"),
    Tag(name="events", description="what happened to them or what they did, with its date"),
    Tag(name="opinions", description="views, values, feelings about something"),
    Tag(name="conversation", description="how they want to be addressed and answered"),
)


def user_set(org: str, project: str, metadata: Mapping[str, str]) -> SemanticSet | None:
    """Return the set that holds the profile of a message's user; None where it names none.

    It is the project's own, so that no other project learns of it.
    """
    for key in _USER_KEYS:
        if metadata.get(key):
            return set_of(org, project, {key: metadata[key]})
    return None


def profile_of(owner: SemanticSet) -> Category | None:
    """Return the category that a set has by itself; None where it is not a user's."""
    if owner.project is None or len(owner.tags) != 1 or not set(owner.tags) <= set(_USER_KEYS):
        return None
    return Category(
        org=owner.org, project=owner.project, set_id=owner.id, name=PROFILE_NAME, prompt=_PROMPT
    )


def is_profile(category: Category) -> bool:
    """Whether a category is the one that sets have by themselves."""
    return not category.id


def tells_of_its_user(role: str) -> bool:
    """Whether what is said in a chat role may tell something about the user."""
    return role.lower() not in _UNHEARD_ROLES


# The verbs of categories, templates and tags.


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
        """Add a category to a set, and return its id.

        Raises:
            AlreadyThere: The set has one of that name.
        """
        owner = self._sets.for_writing(place, set_id)
        return self._categories.add(
            Category(org=owner.org, project=owner.project, set_id=owner.id, **asdict(text))
        )

    def add_template(self, place: Place, set_type_id: str, text: CategoryText) -> str:
        """Add a category that all sets of a type have, and return its id.

        Raises:
            NotThere: There is no such type.
            AlreadyThere: The type has one of that name.
        """
        owner = self._sets.type(place, set_type_id)
        check_reach(place, owner.project)
        return self._categories.add(
            Category(org=owner.org, project=owner.project, set_type_id=owner.id, **asdict(text))
        )

    def templates(self, place: Place, set_type_id: str) -> list[Category]:
        """Return the templates of a set type."""
        return self._categories.templates(self._sets.type(place, set_type_id).id)

    def get(self, place: Place, category_id: str) -> Category:
        """Return a category or template."""
        return self._categories.get(*place.owner, category_id)

    def delete(self, place: Place, category_id: str) -> None:
        """Remove a category or template with its tags."""
        self._categories.delete(self._changeable(place, category_id))

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
        self._categories.disable(owner, name)

    def in_use(self, place: Place, owner: SemanticSet) -> list[Category]:
        """Return the categories of a set, without those that are switched off."""
        off = self._categories.disabled(owner)
        return [each for each in self._all_of(place, owner) if each.name not in off]

    def tags(self, category: Category) -> list[Tag]:
        """Return the tags of a category; with none, its features may have any."""
        return list(PROFILE_TAGS) if is_profile(category) else self._categories.tags(category)

    def add_tag(self, place: Place, category_id: str, name: str, description: str) -> str:
        """Add a tag to a category, and return its id.

        Raises:
            AlreadyThere: The category has one of that name.
        """
        tag = Tag(name=name, description=description)
        return self._categories.add_tag(self._changeable(place, category_id), tag)

    def delete_tag(self, place: Place, tag_id: str) -> None:
        """Remove a tag."""
        check_reach(place, self._categories.category_of_tag(*place.owner, tag_id).project)
        self._categories.delete_tag(tag_id)

    def _changeable(self, place: Place, category_id: str) -> Category:
        category = self.get(place, category_id)
        check_reach(place, category.project)
        return category

    def _all_of(self, place: Place, owner: SemanticSet) -> list[Category]:
        """Return a set's own categories, those of its types, and a user's profile; one a name."""
        found = self._categories.of_set(owner)
        for kind in self._sets.types(place):
            if kind.covers(owner):
                found += self._categories.templates(kind.id)
        profile = profile_of(owner)
        distinct = {each.name: each for each in reversed([*found, *([profile] if profile else [])])}
        return list(reversed(distinct.values()))
