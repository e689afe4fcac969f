"""Features learnt from episodes: what may be learnt, and how commands are carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from ekphory.catalog.database import NotThere
from ekphory.errors import InvalidInput, ServiceError
from ekphory.service.episodes import episode_metadata
from ekphory.service.handles import Place
from ekphory.service.semantic import Feature, Features
from ekphory.service.sets import (
    Categories,
    Category,
    SemanticSet,
    SemanticSets,
    Tag,
    is_profile,
    tells_of_its_user,
    user_set,
)
from ekphory.types import MemoryRecord, is_storable

Learnt = Literal["off", "categories", "profile"]
"""Nothing; the categories that callers have added; a profile of each user as well."""
_ALL: Learnt = "profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionSettings:
    """How features are learnt from episodes.

    Attributes:
        learnt: What is learnt.
        attempts: How often an episode may fail before it is given up.
        backoff: Seconds before it is tried again, doubled each time.
        longest_wait: Most seconds before it is tried again.
        poll: Seconds after which the queue is looked at, though nobody has said that it grew:
            another process may have added to it.
        group: So many features under one tag are put in order: what says the same is merged.
        stop: Most seconds that closing waits for a question that is being answered; what is not
            finished by then is done again after the next start.
    """

    learnt: Learnt = _ALL
    attempts: int = 5
    backoff: float = 2.0
    longest_wait: float = 300.0
    poll: float = 1.0
    group: int = 20
    stop: float = 5.0

    def wait(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row."""
        return min(self.backoff * float(2 ** min(failures - 1, 30)), self.longest_wait)


def read_learnt(text: str | None) -> Learnt:
    """Read the setting `EKPHORY_EXTRACTION`; None means all of it.

    Raises:
        InvalidInput: It is none of them.
    """
    if text is None:
        return _ALL
    if text not in get_args(Learnt):
        problem = "cannot be learnt"
        raise InvalidInput("extraction", text, problem, f"Give {', '.join(get_args(Learnt))}")
    return cast("Learnt", text)


# Commands: what a language model says is to be changed in a group of features.

Action = Literal["add", "update", "delete"]
MOST_COMMANDS = 100
LONGEST_NAME, LONGEST_VALUE = 100, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCommand:
    """One change.

    Attributes:
        action: `add` a value beside others, `update` to put it in their place, `delete` all.
        tag, name: Which feature.
        value: What is known; empty for `delete`.
    """

    action: Action
    tag: str
    name: str
    value: str


def answer_schema(tags: Sequence[Tag]) -> dict[str, Any]:
    """Return the JSON schema of an answer; without tags any may be named."""
    text: dict[str, Any] = {"type": "string"}
    tag = text | {"enum": [each.name for each in tags]} if tags else text
    action = text | {"enum": list(get_args(Action))}
    command = object_schema({"command": action, "tag": tag, "feature": text, "value": text})
    return object_schema({"commands": {"type": "array", "items": command}})


def read_commands(answer: Mapping[str, Any]) -> list[FeatureCommand]:
    """Read an answer that follows the schema.

    Raises:
        ServiceError: It is too long, or a part of it cannot be kept.
    """
    given = answer["commands"]
    if len(given) > MOST_COMMANDS:
        raise ServiceError(f"The model gave {len(given)} commands for one message.")
    return [_read_command(each) for each in given]


def _read_command(given: Mapping[str, str]) -> FeatureCommand:
    action: Action = next(each for each in get_args(Action) if each == given["command"])
    name, tag = check_text("feature", given["feature"]), check_text("tag", given["tag"])
    value = "" if action == "delete" else check_text("value", given["value"], longest=LONGEST_VALUE)
    return FeatureCommand(action=action, tag=tag, name=name, value=value)


def check_text(what: str, text: str, *, longest: int = LONGEST_NAME) -> str:
    """Return a text of an answer without blanks around it.

    Raises:
        ServiceError: It is blank, too long, or cannot be stored.
    """
    found = text.strip()
    if not found or len(found) > longest or not is_storable(found):
        raise ServiceError(f"The model gave a {what} of {len(found)} characters.")
    return found


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


# What an episode may tell something about: categories of sets.


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


# What is to be merged among the features under one tag, as a language model says.

_TEXT = {"type": "string"}
_MERGED = object_schema(
    {"feature": _TEXT, "value": _TEXT, "from": {"type": "array", "items": {"type": "integer"}}}
)
MERGING_SCHEMA = object_schema({"merged": {"type": "array", "items": _MERGED}})
"""What an answer follows."""
_LONGEST_MERGED = 4 * LONGEST_VALUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Merger:
    """One feature that takes the place of several.

    Attributes:
        features: Those that it takes the place of, in order of writing; at least two.
        name, value: What it says.
    """

    features: tuple[Feature, ...]
    name: str
    value: str


def read_mergers(answer: Mapping[str, Any], features: Sequence[Feature]) -> list[Merger]:
    """Read an answer that follows the schema, about features that were numbered from 1.

    Raises:
        ServiceError: It names features that are not there, or one of them twice.
    """
    mergers = [_read_merger(each, features) for each in answer["merged"]]
    named = [feature.id for merger in mergers for feature in merger.features]
    if len(named) != len(set(named)):
        raise ServiceError("The model merged one feature into two.")
    return mergers


def _read_merger(given: Mapping[str, Any], features: Sequence[Feature]) -> Merger:
    numbers = sorted(set(given["from"]))
    if len(numbers) < 2 or numbers[0] < 1 or numbers[-1] > len(features):
        raise ServiceError(f"The model merged the features {numbers} of {len(features)}.")
    return Merger(
        features=tuple(features[number - 1] for number in numbers),
        name=check_text("feature", given["feature"]),
        value=check_text("value", given["value"], longest=_LONGEST_MERGED),
    )


# Commands carried out: features added, replaced and forgotten, each with what it was learnt from.
#
# Whatever is done a second time changes nothing: a job that was cut off is done again from its last
# step on.


class Learning:
    """Carries out what a model says about one user in one category of one set.

    A feature is counted as learnt where it names the episodes it comes from. Others, which a
    caller has set, stay as they are.
    """

    def __init__(
        self, features: Features, sets: SemanticSets, categories: Categories, learnt: Learnt
    ) -> None:
        self._features = features
        self._sets = sets
        self._categories = categories
        self._learnt = learnt

    def targets(self, place: Place, record: MemoryRecord) -> list[Target]:
        """Return the categories of all sets that an episode's metadata is about.

        An organisation's sets count where they were given categories, and whoever added the
        episode may change what is the organisation's.
        """
        metadata = {"producer_id": record.producer} | episode_metadata(record)
        own = None
        if self._learnt == "profile" and tells_of_its_user(record.role):
            own = user_set(*place.owner, metadata)
        owners = {each.key: each for each in self._sets.listed(place, metadata)}
        if own is not None:
            owners[own.key] = own
        return [
            Target(
                owner=owner,
                user=metadata.get("user_id"),
                category=category,
                tags=tuple(self._categories.tags(category)),
            )
            for owner in owners.values()
            if owner.project is not None or place.reach == "org"
            for category in self._categories.in_use(place, owner)
            # Of the sets that a message is about, one alone is its user's.
            if not is_profile(category) or owner == own
        ]

    def noted(self, target: Target, *, like: str, limit: int) -> list[Feature]:
        """Return what is noted already; of too much, what is nearest to a text."""
        return self._features.of_category(
            target.owner, target.category.name, user=target.user, like=like, limit=limit
        )

    def by_tag(self, target: Target) -> dict[str, list[Feature]]:
        """Return what was learnt, by tag, in order of writing."""
        found: dict[str, list[Feature]] = {}
        for each in self._all(target):
            if each.citations:
                found.setdefault(each.tag, []).append(each)
        return found

    def carry_out(
        self,
        place: Place,
        target: Target,
        episode: MemoryRecord,
        commands: Sequence[FeatureCommand],
    ) -> list[str]:
        """Carry out commands in order; return the ids of the features that are new."""
        if not commands:
            return []
        self._sets.make_known(target.owner)
        held = self._all(target)
        known = {each.id for each in held}
        for command in commands:
            same = [each for each in held if _key(each) == _key(command)]
            others = [each for each in held if each not in same]
            new = Feature(
                set_id=target.owner.id,
                category=target.category.name,
                tag=command.tag,
                name=command.name,
                value=command.value,
                # By which it is found as well.
                metadata=episode_metadata(episode),
                citations=(episode.id,),
            )
            held = others + self._carry_out_one(place, same, command.action, new)
        return [each.id for each in held if each.id not in known]

    def take_back(self, place: Place, ids: Sequence[str]) -> None:
        """Forget features that should not have been added; some may be gone already."""
        for feature_id in ids:
            with suppress(NotThere):
                self._features.delete(place, [feature_id])

    def merge(self, place: Place, merger: Merger) -> None:
        """Put one feature in the place of several, with the citations of all."""
        first, *others = merger.features
        changes = {
            "name": merger.name,
            "value": merger.value,
            "citations": _unite_citations(merger.features),
            "metadata": _find_shared_metadata(merger.features),
        }
        self._features.update(place, first.id, changes)
        self._features.delete(place, [each.id for each in others])

    def _all(self, target: Target) -> list[Feature]:
        return self._features.of_category(target.owner, target.category.name, user=target.user)

    def _carry_out_one(
        self, place: Place, same: list[Feature], action: Action, new: Feature
    ) -> list[Feature]:
        """Carry out one command on the features that it names; return what is left of them."""
        if action == "add":
            return self._add(place, same, new)
        learnt = [each for each in same if each.citations]
        given = [each for each in same if not each.citations]
        if action == "update":
            return [*given, self._update(place, learnt, new)]
        self._features.delete(place, [each.id for each in learnt])
        return given

    def _add(self, place: Place, same: list[Feature], new: Feature) -> list[Feature]:
        """Add a feature; where it is noted with this value already, only its citation is new."""
        twin = next((each for each in same if _plain(each.value) == _plain(new.value)), None)
        if twin is None:
            return [*same, replace(new, id=self._features.add(place, new))]
        cited = replace(twin, citations=_unite_citations([twin, new]))
        if not twin.citations or cited == twin:
            return same
        self._features.update(place, twin.id, {"citations": cited.citations})
        return [cited if each is twin else each for each in same]

    def _update(self, place: Place, learnt: Sequence[Feature], new: Feature) -> Feature:
        """Let the first that was learnt become the new one, and forget the others."""
        if not learnt:
            return replace(new, id=self._features.add(place, new))
        first, *others = learnt
        changed = replace(new, id=first.id, citations=_unite_citations([*learnt, new]))
        if (first.value, first.citations) != (changed.value, changed.citations):
            names = ("value", "citations", "metadata")
            self._features.update(place, first.id, {name: getattr(changed, name) for name in names})
        self._features.delete(place, [each.id for each in others])
        return changed


def _key(named: Feature | FeatureCommand) -> tuple[str, str]:
    return _plain(named.tag), _plain(named.name)


def _plain(text: str) -> str:
    """Return a text as it counts: `Favourite dish` and `favourite_dish` are one name."""
    return " ".join(text.replace("_", " ").casefold().split())


def _unite_citations(features: Sequence[Feature]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cited for each in features for cited in each.citations))


def _find_shared_metadata(features: Sequence[Feature]) -> dict[str, str]:
    """Return the metadata that all of them have."""
    first, *others = (each.metadata.items() for each in features)
    return dict(item for item in first if all(item in other for other in others))
