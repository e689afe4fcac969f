"""Recalled memories as a block for a prompt: framed, escaped, filtered, within a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ekphory.errors import InvalidInput
from ekphory.moments import now_utc, to_utc
from ekphory.prompting.age import age_in_words
from ekphory.prompting.context_overlap import already_said
from ekphory.prompting.escaping import escaped, escaped_attribute
from ekphory.prompting.injection import find_injection
from ekphory.prompting.token_budget import CountTokens, estimate_tokens, within_budget
from ekphory.recalled import CLOSING, OPENING, SECURITY_COMMENT
from ekphory.types import Hit

Injections = Literal["drop", "keep"]
Reason = Literal["injection", "overlap", "budget"]

NOTHING_FOUND = "No memory was found."
NOTHING_LIKELY = "Memories were found, but none that is likely enough to answer."
NOTHING_SHOWN = "Memories were found, but none is shown."


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSettings:
    """How a block is made.

    Attributes:
        max_tokens: The whole block, frame included, has at most so many tokens.
        now: The moment that ages are told from; ISO 8601, a datetime, or None for the current one.
        recent_messages: Texts that the prompt holds anyway; what they say already is left out.
        injections: Whether memories that try to steer a model are left out or kept.
        count_tokens: Counts the tokens of a text.
    """

    max_tokens: int = 2000
    now: str | datetime | None = None
    recent_messages: Sequence[str] = ()
    injections: Injections = "drop"
    count_tokens: CountTokens = estimate_tokens

    def __post_init__(self) -> None:
        if isinstance(self.max_tokens, bool) or not isinstance(self.max_tokens, int):
            raise InvalidInput("max_tokens", self.max_tokens, "is no number", "Give a whole number")
        if self.max_tokens < 1:
            raise InvalidInput("max_tokens", self.max_tokens, "leaves no room", "Give 1 or more")
        if self.injections not in ("drop", "keep"):
            raise InvalidInput("injections", self.injections, "no such choice", "drop or keep")
        if not callable(self.count_tokens):
            raise InvalidInput("count_tokens", self.count_tokens, "is no function", "Give one")
        if not _are_texts(self.recent_messages):
            raise InvalidInput(
                "recent_messages",
                self.recent_messages,
                "is no list of texts",
                'Give ["the last message"]',
            )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One hit that a block does not show.

    Attributes:
        hit: The hit.
        reason: `injection`: it tries to steer a model; `overlap`: a recent message says it already;
            `budget`: it did not fit.
        rule: For an injection, the rule that it matches; else None.
    """

    hit: Hit
    reason: Reason
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """What goes into a prompt, and what was left out of it.

    Attributes:
        text: The block; empty only when the budget cannot hold even its frame.
        used_tokens: The tokens of the text, never more than `max_tokens`.
        included: The hits that the text shows, best first.
        left_out: The hits that it does not show, best first, each with the reason.
    """

    text: str
    used_tokens: int
    included: tuple[Hit, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def injections_dropped(self) -> int:
        """How many hits were left out because they try to steer a model."""
        return sum(entry.reason == "injection" for entry in self.left_out)


def prompt_block(
    hits: Sequence[Hit],
    settings: BlockSettings,
    *,
    if_empty: str = NOTHING_FOUND,
    notes: Sequence[str] = (),
) -> PromptBlock:
    """Render hits as a block of `<memory>` elements, whose `index` is the hit's place from 1.

    A hit that does not fit into the budget is passed over, and the next one is tried.

    Args:
        hits: Best first.
        settings: How the block is made.
        if_empty: What the block says when there are no hits, so that a search without a result
            does not look like one that never ran.
        notes: What the block says before the memories, a line each; those that do not fit beside
            the frame are left out.

    Raises:
        InvalidInput: `now` is no moment.
    """
    now = now_utc() if settings.now is None else to_utc(settings.now, field="now")
    refused = _refused(hits, settings)
    lines = {
        place: _line(hit, place + 1, now) for place, hit in enumerate(hits) if place not in refused
    }
    told = _told(notes, settings)
    shown = _fitting(lines, told, settings)
    remarks = () if shown else (NOTHING_SHOWN if hits else if_empty, "")
    text = _text([*told, *(lines[place] for place in shown)] if shown else [], remarks, settings)
    return PromptBlock(
        text,
        settings.count_tokens(text) if text else 0,
        tuple(hits[place] for place in shown),
        tuple(
            refused.get(place, LeftOut(hit, "budget"))
            for place, hit in enumerate(hits)
            if place not in shown
        ),
    )


def _are_texts(given: object) -> bool:
    if isinstance(given, str) or not isinstance(given, Sequence):
        return False
    return all(isinstance(text, str) for text in given)


def _refused(hits: Sequence[Hit], settings: BlockSettings) -> dict[int, LeftOut]:
    """Give, by place, the hits that are left out for what they say."""
    refused: dict[int, LeftOut] = {}
    # The memory's own text: one that was expanded would share too little with any message.
    said = already_said([hit.memory.text for hit in hits], settings.recent_messages)
    for place, hit in enumerate(hits):
        if said[place]:
            refused[place] = LeftOut(hit, "overlap")
        elif settings.injections == "drop":
            rule = _rule_matched(hit)
            if rule is not None:
                refused[place] = LeftOut(hit, "injection", rule)
    return refused


def _rule_matched(hit: Hit) -> str | None:
    """Give the rule that the memory's text, or a name shown with it, matches."""
    shown = (hit.text, hit.memory.producer, hit.memory.path, hit.memory.source)
    return next((rule for text in shown if text and (rule := find_injection(text).rule)), None)


def _told(notes: Sequence[str], settings: BlockSettings) -> list[str]:
    """Give the notes that fit beside the frame, as escaped lines."""
    lines = [f"  <!-- {escaped_attribute(note)} -->\n" for note in notes]
    while lines and _is_over(_framed(lines), settings):
        lines.pop()
    return lines


def _fitting(lines: Mapping[int, str], told: list[str], settings: BlockSettings) -> list[int]:
    """Give the places of the lines that fit beside the frame; none where the frame does not."""
    places = list(lines)
    fitting = within_budget(
        [_framed(told), *lines.values()], settings.max_tokens, count_tokens=settings.count_tokens
    )
    shown = [places[place - 1] for place in fitting[1:]] if fitting[:1] == [0] else []
    # A counter that rounds each part may find the whole longer than its parts.
    while shown and _is_over(_framed([*told, *(lines[place] for place in shown)]), settings):
        shown.pop()
    return shown


def _text(lines: list[str], remarks: Sequence[str], settings: BlockSettings) -> str:
    """Frame the lines, or the first of the remarks that fits; nothing where not even one fits."""
    if lines:
        return _framed(lines)
    framed = (_framed([f"  <!-- {remark} -->\n"] if remark else []) for remark in remarks)
    return next((text for text in framed if not _is_over(text, settings)), "")


def _is_over(text: str, settings: BlockSettings) -> bool:
    return settings.count_tokens(text) > settings.max_tokens


def _framed(lines: list[str]) -> str:
    return f"{OPENING}\n{SECURITY_COMMENT}\n{''.join(lines)}{CLOSING}"


def _line(hit: Hit, index: int, now: datetime) -> str:
    memory = hit.memory
    attributes = {
        "index": str(index),
        "source": memory.path or memory.source or memory.pool,
        "type": memory.type,
        "date": memory.at.date().isoformat(),
        "age": age_in_words(memory.at, now),
        "confidence": f"{hit.score:.2f}",
        "producer": memory.producer,
    }
    shown = " ".join(
        f'{name}="{escaped_attribute(value)}"' for name, value in attributes.items() if value
    )
    return f"  <memory {shown}>{escaped(hit.text)}</memory>\n"
