"""Turns a template and a situation into the text of a memory, with its importance."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal

from ekphory.training.memories.sample import GeneratedMemory
from ekphory.training.memories.situation import USER, Situation
from ekphory.training.memories.templates import Kind, Stress, Template

Voice = Literal["said", "told", "said_not", "told_not"]

_STRESSED_SHARE = 0.3
_SHOWN_SPEAKER_SHARE = 0.6
_LESS_WHEN_DENIED = 0.35
_LEAST_WHEN_DENIED = 0.1
_PLAIN = "{text}"


@dataclass(frozen=True, slots=True)
class Wording:
    """How a memory is put, whomever and whatever it is about.

    Attributes:
        kind: The kind of memory.
        voice: Who says it, and whether it is denied.
        template: The sentence, one of that kind and voice.
        stress: Words around it, with the slot `text`.
        change: What these add to the importance.
        speaker: What stands before the user's own words, `user` or nothing.
    """

    kind: Kind
    voice: Voice
    template: Template
    stress: str = _PLAIN
    change: float = 0.0
    speaker: str = ""

    def memory(self, situation: Situation, days_ago: float) -> GeneratedMemory:
        """Say it about that situation."""
        return GeneratedMemory(
            self._text(situation), days_ago, self.kind.type, self._importance(situation)
        )

    def _text(self, situation: Situation) -> str:
        text = self.template.text.format_map(situation.slots)
        if self.stress is not _PLAIN:
            inside = self.stress.format(text=text)
            # "The tap" becomes "the tap" within a sentence; names and "I" stay as they are.
            opening = self.template.text[:2]
            movable = opening[0].isupper() and opening != "I " and self.stress[0] != "{"
            text = self.stress.format(text=text[0].lower() + text[1:]) if movable else inside
        text = text[0].upper() + text[1:]
        if self.voice.startswith("told"):
            return text
        speaker = self.speaker if situation.person == USER else situation.person
        return f"{speaker}: {text}" if speaker else text

    def _importance(self, situation: Situation) -> float:
        graded = situation.money_importance if self.kind.graded_by_money else self.kind.importance
        if self.voice.endswith("_not"):
            graded = max(min(graded, _LEAST_WHEN_DENIED), graded - _LESS_WHEN_DENIED)
        return round(min(1.0, max(0.0, graded + self.change)), 2)


def draw_wording(
    source: random.Random,
    kind: Kind,
    asked: frozenset[str],
    stresses: tuple[Stress, ...],
) -> Wording:
    """Draw a sentence of that kind; one with everything that is asked, where there is one."""
    said, told = _holding(kind.said, asked), _holding(kind.told, asked)
    if not said and not told:
        said, told = kind.said, kind.told
    use_said = not told or (bool(said) and source.random() < 1 / 2)
    speaker = "user" if source.random() < _SHOWN_SPEAKER_SHARE else ""
    wording = Wording(
        kind,
        "said" if use_said else "told",
        source.choice(said if use_said else told),
        speaker=speaker,
    )
    if stresses and source.random() < _STRESSED_SHARE:
        return stressed(source, wording, stresses)
    return wording


def stressed(source: random.Random, wording: Wording, stresses: tuple[Stress, ...]) -> Wording:
    """Put words for importance around it."""
    stress = source.choice(stresses)
    return replace(wording, stress=source.choice(stress.words), change=stress.change)


def opposite(source: random.Random, wording: Wording) -> Wording:
    """Deny it, or say that it is no longer so, in the same voice; of a denial, claim it."""
    voices: dict[Voice, tuple[Voice, tuple[Template, ...]]] = {
        "said": ("said_not", wording.kind.said_not),
        "told": ("told_not", wording.kind.told_not),
        "said_not": ("said", wording.kind.said),
        "told_not": ("told", wording.kind.told),
    }
    voice, candidates = voices[wording.voice]
    return replace(wording, voice=voice, template=source.choice(candidates))


def _holding(candidates: tuple[Template, ...], asked: frozenset[str]) -> tuple[Template, ...]:
    return tuple(each for each in candidates if asked <= each.slots)
