"""Recalled memories as a block for a prompt: framed, escaped, within a budget."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from html import escape
from typing import Literal, NoReturn, get_args

from ekphory.agent_trace import CONFIDENT, RetrievalTrace, StageResult
from ekphory.errors import InvalidInput
from ekphory.prompting.injection import UNSPACED, find_injection, neutralise_markers
from ekphory.prompting.recall_block import CLOSING, OPENING, SECURITY_COMMENT
from ekphory.types import Hit, are_strings, check_count, is_pinned, now_utc, to_utc

# A budget of tokens: what does not fit is passed over, and what follows is tried.

CountTokens = Callable[[str], int]

_LETTERS_PER_TOKEN = 4
# A run of ASCII letters, of blanks, of line breaks, or any other single character.
_PIECE = re.compile(r"[A-Za-z]+|[^\S\n]{2,}|\n+|\S")


def estimate_tokens(text: str) -> int:
    """Estimate from above how many tokens a language model sees.

    An ASCII word counts one token for every four letters begun; a digit, a sign, an indentation,
    a run of line breaks and a Cyrillic letter one each; any other character two, three (three
    bytes in UTF-8, but not Chinese, Japanese or Korean) or four (four bytes). Against the
    tokenizers of GPT-4, GPT-4o, Claude 2, Qwen and DeepSeek this is 1.2 to 1.6 times the count on
    chats, articles and Python, and 1.6 to 2.8 times on Chinese, Japanese and Korean; the usual
    ceil(1.3 · words) is .6 times on Python and .1 to .2 times on Chinese, Japanese and Korean.
    Single words may be counted one too low, and long random numbers a tenth.
    """
    return sum(map(_estimate_piece, _PIECE.findall(text)))


def _estimate_piece(piece: str) -> int:
    if piece.isspace():
        return 1
    if piece.isascii():
        return -(-len(piece) // _LETTERS_PER_TOKEN)
    code = ord(piece)
    if 0x400 <= code <= 0x52F:
        return 1
    if code < 0x800 or 0x3000 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7AF:
        return 2
    return 3 if code < 0x10000 else 4


def fit_token_budget(
    texts: Iterable[str], max_tokens: int, *, count_tokens: CountTokens = estimate_tokens
) -> list[int]:
    """Return the places of the texts that fit, taken in order; one that does not fit is skipped."""
    left = max_tokens
    places: list[int] = []
    for place, text in enumerate(texts):
        cost = count_tokens(text)
        if cost <= left:
            left -= cost
            places.append(place)
    return places


# How long ago something was, in words.

_UNITS = (
    (365.25 * 86_400, "year"),
    (30.44 * 86_400, "month"),
    (7 * 86_400, "week"),
    (86_400, "day"),
    (3_600, "hour"),
    (60, "minute"),
)


def format_age(at: datetime, now: datetime) -> str:
    """Say how far `at` lies from `now`: `3 days ago`, `in 2 hours`, `just now` below a minute.

    The largest unit that fits is counted, rounded down. Both moments are timezone-aware.
    """
    seconds = (now - at).total_seconds()
    for length, unit in _UNITS:
        count = int(abs(seconds) // length)
        if count:
            span = f"{count} {unit}{'s' if count > 1 else ''}"
            return f"{span} ago" if seconds > 0 else f"in {span}"
    return "just now"


# Stored text made harmless: nothing in it can pass for markup, a chat turn or a terminal code.

_LINE_BREAK = re.compile("\r\n?|[\u0085\u2028\u2029]")
# Control characters, and format characters that hide, reorder or smuggle text. The joiners that
# emoji and several scripts need stay.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
    "|[\ufdd0-\ufdef\ufffe\uffff]|["
    + "".join(chr(plane * 0x10000 + last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
_BLANKS = re.compile(r"\s+")
_LONGEST_ATTRIBUTE = 200


def escape_text(text: str) -> str:
    """Make a text safe as the content of an XML element.

    Line breaks become line feeds, hidden characters go, the marks of chat templates lose their
    brackets, and only then `&`, `<`, `>`, `"` and `'` become entities, as marks are made of them.
    """
    shown = _HIDDEN.sub("", _LINE_BREAK.sub("\n", text))
    return escape(neutralise_markers(shown), quote=True)


def escape_attribute(text: str) -> str:
    """Make a text safe as the value of an attribute: on one line, at most 200 characters."""
    line = _BLANKS.sub(" ", text).strip()
    if len(line) > _LONGEST_ATTRIBUTE:
        line = line[: _LONGEST_ATTRIBUTE - 1] + "…"
    return escape_text(line)


# Which memories the conversation already holds, by the words that both share.

MOST_SHARED = 0.4
"""Memory-Spark's limit: a memory that shares more of its tokens with a message is dropped."""

_TOKEN = re.compile(rf"[{UNSPACED}]+|[^\W{UNSPACED}]{{4,}}")
_UNSPACED_START = re.compile(rf"[{UNSPACED}]")


def measure_overlap(text: str, message: str) -> float:
    """Return the share, in [0, 1], of a text's tokens that a message holds too; 0 without tokens.

    Tokens are words of at least four characters, and overlapping pairs of characters in scripts
    without spaces. Give the text as it was stored, before anything is added to it.
    """
    return _share(_tokens(text), _tokens(message))


def already_said(
    texts: Iterable[str], messages: Sequence[str], *, most_shared: float = MOST_SHARED
) -> list[bool]:
    """Say of each text whether it shares more than `most_shared` of its tokens with a message."""
    said = [_tokens(message) for message in messages]
    return [any(_share(_tokens(text), tokens) > most_shared for tokens in said) for text in texts]


def _share(tokens: frozenset[str], others: frozenset[str]) -> float:
    return len(tokens & others) / len(tokens) if tokens else 0.0


def _tokens(text: str) -> frozenset[str]:
    tokens: set[str] = set()
    for token in _TOKEN.findall(text.casefold()):
        if _UNSPACED_START.match(token) and len(token) > 1:
            tokens.update(token[place : place + 2] for place in range(len(token) - 1))
        else:
            tokens.add(token)
    return frozenset(tokens)


# The evidence chain as lines before the memories of a block.

LEFT_OUT = "(left out)"


def format_hop_notes(trace: RetrievalTrace, hits: Sequence[Hit]) -> tuple[str, ...]:
    """Tell every hop in a line.

    What a hop found comes out of a memory, and so does what the next one looked for: where it tries
    to steer a model it is left out, as such a memory is.

    Args:
        trace: What the agent did.
        hits: The hits of the block, whose places from 1 the lines name.
    """
    places = {hit.id: place for place, hit in enumerate(hits, start=1)}
    as_results = trace.stage_results_wanted == "memory"
    return tuple(
        hop.line if as_results and _is_sure(hop) else _note(number, hop, places)
        for number, hop in enumerate(trace.hops, start=1)
    )


def _is_sure(hop: StageResult) -> bool:
    told = (hop.query, hop.answer, hop.reason)
    return bool(hop.answer) and hop.confidence >= CONFIDENT and not any(map(_steers, told))


def _note(number: int, hop: StageResult, places: Mapping[str, int]) -> str:
    query, found = (LEFT_OUT if _steers(each) else each for each in (hop.query, hop.answer))
    named = [str(places[each]) for each in hop.memory_ids if each in places]
    parts = [f"hop {number}: {query}"]
    if found:
        parts.append(f"found: {found}")
    parts.append(f"confidence {hop.confidence:.2f}")
    if named:
        parts.append(f"memory {', '.join(named)}")
    return "; ".join(parts)


def _steers(text: str) -> bool:
    return bool(text) and find_injection(text).rule is not None


# The block.

Injections = Literal["drop", "keep"]
Reason = Literal["injection", "overlap", "unlikely", "budget"]

NOTHING_FOUND = "No memory was found."
NOTHING_LIKELY = "Memories were found, but none that is likely enough to answer."
NOTHING_SHOWN = "Memories were found, but none is shown."


@dataclass(frozen=True, slots=True)
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
        check_count("max_tokens", self.max_tokens)
        if self.injections not in get_args(Injections):
            self._refuse("injections", "must be drop or keep", "Choose one of them")
        if not callable(self.count_tokens):
            self._refuse("count_tokens", "must be a function", "Pass a function of a text")
        if not are_strings(self.recent_messages):
            remedy = 'Pass a list like ["the last message"]'
            self._refuse("recent_messages", "must be a list of strings", remedy)

    def _refuse(self, name: str, problem: str, remedy: str) -> NoReturn:
        raise InvalidInput(name, getattr(self, name), problem, remedy)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One hit that a block does not show.

    Attributes:
        hit: The hit.
        reason: `injection`: it tries to steer a model; `overlap`: a recent message says it already;
            `unlikely`: its confidence rounds to 0.00, and no hop of the agent led to it; `budget`:
            it did not fit.
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
        included: The hits that the text shows, best first; one of them may be cut short.
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
    asked: bool = True,
) -> PromptBlock:
    """Render hits as a block of `<memory>` elements, whose `index` is the hit's place from 1.

    A hit that does not fit into the budget is passed over, and the next one is tried. Where none
    fits, the first one is cut at the end of a sentence or a word. A hit whose confidence rounds to
    0.00 is left out beside others, unless a hop of the agent led to it.

    Args:
        hits: Best first.
        settings: How the block is made.
        if_empty: What the block says when there are no hits, so that a search without a result
            does not look like one that never ran.
        notes: What the block says before the memories, a line each; those that do not fit beside
            the frame are left out.
        asked: Whether the hits answer a question; where they were listed, none has a confidence.

    Raises:
        InvalidInput: `now` is not a timestamp.
    """
    now = now_utc() if settings.now is None else to_utc(settings.now, field="now")
    refused = _refuse(hits, settings, asked=asked)
    write_line = partial(_write_line, now=now, asked=asked)
    lines = {
        place: write_line(hit, place + 1) for place, hit in enumerate(hits) if place not in refused
    }
    told = _fit_notes(notes, settings)
    shown = _fit_lines(lines, told, settings)
    if lines and not shown:
        first = next(iter(lines))
        write = partial(write_line, index=first + 1)
        cut = _cut_line(hits[first], write, told, settings)
        lines, shown = (lines | {first: cut}, [first]) if cut else (lines, shown)
    remarks = () if shown else (NOTHING_SHOWN if hits else if_empty, "")
    text = _write_text(
        [*told, *(lines[place] for place in shown)] if shown else [], remarks, settings
    )
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


def _refuse(hits: Sequence[Hit], settings: BlockSettings, *, asked: bool) -> dict[int, LeftOut]:
    """Return, by place, the hits that are left out for what they say."""
    refused: dict[int, LeftOut] = {}
    # The memory's own text: one that was expanded would share too little with any message.
    said = already_said([hit.memory.text for hit in hits], settings.recent_messages)
    for place, hit in enumerate(hits):
        if said[place]:
            refused[place] = LeftOut(hit, "overlap")
        elif settings.injections == "drop":
            # Not only the text may steer, but also a name that is shown with it.
            shown = (hit.text, hit.memory.producer, hit.memory.path, hit.memory.source)
            rules = (find_injection(text).rule for text in shown if text)
            if rule := next(filter(None, rules), None):
                refused[place] = LeftOut(hit, "injection", rule)
    left = [place for place in range(len(hits)) if place not in refused]
    unlikely = [place for place in left if asked and _is_unlikely(hits[place])]
    if len(unlikely) < len(left):
        refused |= {place: LeftOut(hits[place], "unlikely") for place in unlikely}
    return refused


def _is_unlikely(hit: Hit) -> bool:
    """Return whether a hit's confidence is shown as none.

    A rule is for every prompt, and what is superseded says by its mark why it has none. A memory of
    the agent's chain answers something that was asked on the way, if not the question itself.
    """
    likeliest = max(hit.score, hit.scores.get("hop", 0.0))
    return f"{likeliest:.2f}" == "0.00" and hit.since is None and not is_pinned(hit.memory)


def _fit_notes(notes: Sequence[str], settings: BlockSettings) -> list[str]:
    """Return the notes that fit beside the frame, as escaped lines."""
    lines = [f"  <!-- {escape_attribute(note)} -->\n" for note in notes]
    while lines and _is_over(_frame(lines), settings):
        lines.pop()
    return lines


def _fit_lines(lines: Mapping[int, str], told: list[str], settings: BlockSettings) -> list[int]:
    """Return the places of the lines that fit beside the frame; none where the frame does not."""
    places = list(lines)
    fitting = fit_token_budget(
        [_frame(told), *lines.values()], settings.max_tokens, count_tokens=settings.count_tokens
    )
    shown = [places[place - 1] for place in fitting[1:]] if fitting[:1] == [0] else []
    # A counter that rounds each part may find the whole longer than its parts.
    while shown and _is_over(_frame([*told, *(lines[place] for place in shown)]), settings):
        shown.pop()
    return shown


_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_SENTENCE = re.compile(r"[.!?…]['\"”’)]*(?=\s)|[。！？]")
_LEAST_SENTENCES = 0.5
"""Share of what fits that whole sentences must have; else it is cut at a word."""


def _cut_line(
    hit: Hit, write_line: Callable[[Hit], str], told: list[str], settings: BlockSettings
) -> str | None:
    """Return the line of a hit with as much of its text as fits; None where no word does."""

    def write(end: int) -> str:
        return write_line(replace(hit, text=hit.text[:end].rstrip() + " …"))

    ends = [word.end() for word in _WORD.finditer(hit.text)][:-1]
    most = bisect.bisect_right(
        ends, 0, key=lambda end: int(_is_over(_frame([*told, write(end)]), settings))
    )
    if most == 0:
        return None
    end = ends[most - 1]
    sentences = [each.end() for each in _SENTENCE.finditer(hit.text, 0, end + 1)]
    if sentences and sentences[-1] >= _LEAST_SENTENCES * end:
        end = sentences[-1]
    line = write(end)
    # A counter need not count more for more text, and a part may steer where the whole does not.
    if _is_over(_frame([*told, line]), settings):
        return None
    steers = settings.injections == "drop" and find_injection(hit.text[:end]).rule is not None
    return None if steers else line


def _write_text(lines: list[str], remarks: Sequence[str], settings: BlockSettings) -> str:
    """Frame the lines, or the first of the remarks that fits; nothing where not even one fits."""
    if lines:
        return _frame(lines)
    framed = (_frame([f"  <!-- {remark} -->\n"] if remark else []) for remark in remarks)
    return next((text for text in framed if not _is_over(text, settings)), "")


def _is_over(text: str, settings: BlockSettings) -> bool:
    return settings.count_tokens(text) > settings.max_tokens


def _frame(lines: list[str]) -> str:
    return f"{OPENING}\n{SECURITY_COMMENT}\n{''.join(lines)}{CLOSING}"


def _write_line(hit: Hit, index: int, *, now: datetime, asked: bool) -> str:
    memory = hit.memory
    attributes = {
        "index": str(index),
        "source": memory.path or memory.source or memory.pool,
        "type": memory.type,
        "date": memory.at.date().isoformat(),
        "age": format_age(memory.at, now),
        "confidence": f"{hit.score:.2f}" if asked else "",
        "producer": memory.producer,
        "superseded": _tell_superseded(hit),
    }
    shown = " ".join(
        f'{name}="{escape_attribute(value)}"' for name, value in attributes.items() if value
    )
    return f"  <memory {shown}>{escape_text(hit.text)}</memory>\n"


def _tell_superseded(hit: Hit) -> str:
    if hit.since is not None:
        return f"since {hit.since.date().isoformat()}"
    return "by a later version" if hit.memory.superseded_by else ""
