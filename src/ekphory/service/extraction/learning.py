"""Commands carried out: features added, replaced and forgotten, each with what it was learnt from.

Whatever is done a second time changes nothing: a job that was cut off is done again from its last
step on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from ekphory.catalog.failures import NotThere
from ekphory.service.extraction.command import FeatureCommand
from ekphory.service.extraction.merging import Merger
from ekphory.service.extraction.targets import Target, said_about
from ekphory.service.feature import Feature
from ekphory.service.features import Features
from ekphory.service.place import Place
from ekphory.service.set_verbs import SetVerbs
from ekphory.types import MemoryRecord


class Learning:
    """Carries out what a model says about one user in one category of one set.

    A feature is counted as learnt where it names the episodes it comes from. Others, which a
    caller has set, stay as they are.
    """

    def __init__(self, features: Features, sets: SetVerbs) -> None:
        self._features = features
        self._sets = sets

    def noted(self, target: Target, *, like: str, limit: int) -> list[Feature]:
        """Give what is noted already; of too much, what is nearest to a text."""
        return self._features.of_category(
            target.owner, target.category.name, user=target.user, like=like, limit=limit
        )

    def by_tag(self, target: Target) -> dict[str, list[Feature]]:
        """Give what was learnt, by tag, in order of writing."""
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
        """Carry out commands in order; gives the ids of the features that are new."""
        if not commands:
            return []
        self._sets.make_known(target.owner)
        held = self._all(target)
        known = {each.id for each in held}
        for command in commands:
            same = [each for each in held if _is_meant(command, each)]
            others = [each for each in held if each not in same]
            held = others + self._carried_out(
                place, same, command, _feature(target, episode, command)
            )
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
            "citations": _cited(merger.features),
            "metadata": _shared(merger.features),
        }
        self._features.update(place, first.id, changes)
        self._features.delete(place, [each.id for each in others])

    def _all(self, target: Target) -> list[Feature]:
        return self._features.of_category(target.owner, target.category.name, user=target.user)

    def _carried_out(
        self, place: Place, same: list[Feature], command: FeatureCommand, new: Feature
    ) -> list[Feature]:
        """Carry out one command on the features that it names; gives what is left of them."""
        if command.action == "add":
            return self._added(place, same, new)
        learnt = [each for each in same if each.citations]
        given = [each for each in same if not each.citations]
        if command.action == "update":
            return [*given, self._updated(place, learnt, new)]
        if learnt:
            self._features.delete(place, [each.id for each in learnt])
        return given

    def _added(self, place: Place, same: list[Feature], new: Feature) -> list[Feature]:
        """Add a feature; where it is noted with this value already, only its citation is new."""
        twin = next((each for each in same if _plain(each.value) == _plain(new.value)), None)
        if twin is None:
            return [*same, replace(new, id=self._features.add(place, new))]
        cited = replace(twin, citations=_cited([twin, new]))
        if not twin.citations or cited == twin:
            return same
        self._features.update(place, twin.id, {"citations": cited.citations})
        return [cited if each is twin else each for each in same]

    def _updated(self, place: Place, learnt: Sequence[Feature], new: Feature) -> Feature:
        """Let the first that was learnt become the new one, and forget the others."""
        if not learnt:
            return replace(new, id=self._features.add(place, new))
        first, *others = learnt
        changes = {
            "value": new.value,
            "citations": _cited([*learnt, new]),
            "metadata": new.metadata,
        }
        if (first.value, first.citations) != (new.value, changes["citations"]):
            self._features.update(place, first.id, changes)
        if others:
            self._features.delete(place, [each.id for each in others])
        return replace(new, id=first.id, citations=_cited([*learnt, new]))


def _feature(target: Target, episode: MemoryRecord, command: FeatureCommand) -> Feature:
    """Give what a command says, with the episode's metadata, by which it is found as well."""
    return Feature(
        set_id=target.owner.id,
        category=target.category.name,
        tag=command.tag,
        name=command.name,
        value=command.value,
        metadata=said_about(episode),
        citations=(episode.id,),
    )


def _is_meant(command: FeatureCommand, feature: Feature) -> bool:
    named = (_plain(feature.tag), _plain(feature.name))
    return named == (_plain(command.tag), _plain(command.name))


def _plain(text: str) -> str:
    """Give a text as it counts: `Favourite dish` and `favourite_dish` are one name."""
    return " ".join(text.replace("_", " ").casefold().split())


def _cited(features: Sequence[Feature]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cited for each in features for cited in each.citations))


def _shared(features: Sequence[Feature]) -> dict[str, str]:
    """Give the metadata that all of them have."""
    first, *others = (each.metadata.items() for each in features)
    return dict(item for item in first if all(item in other for other in others))
