"""From raw messages to memories, without a language model.

Secrets are cut out first. Then a bundled model says of each message whether it is worth
remembering, as what, which messages before it are needed to understand it, and what it names. What
a tool printed is evidence only, and what tries to steer a model is neither kept nor evidence.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ekphory.capture import services
from ekphory.capture.cleaning import (
    CleanedMessages,
    clean_messages,
    said_secrets,
    values_of,
    without_secrets,
)
from ekphory.capture.secrets import REDACTED, find_secrets
from ekphory.capture.secrets import redact as find_and_cut
from ekphory.capture.transcript import GivenMessage, read_messages
from ekphory.config import read_settings
from ekphory.engine import Engine
from ekphory.errors import InvalidInput
from ekphory.filters.tree import SEPARATOR, Comparison, Field
from ekphory.history import change, get, in_view
from ekphory.models import captures
from ekphory.models.chat import Chat
from ekphory.prompting.injection import find_injection
from ekphory.scope import Scope
from ekphory.types import (
    DEFAULT_POOL,
    MemoryRecord,
    MemoryType,
    Scalar,
    WriteReport,
    now_utc,
)
from ekphory.write import Draft, add_drafts, make_draft

LEAST_STEERING = 0.2
"""From this probability on a message steers: one that is kept costs more than one that is lost."""
_LONGEST_CONTEXT = 400
"""Characters of the end of a message that another one needs."""
_LONGEST_KEPT = 6_000
"""Characters of a message: about so many are read, and what is longer is a log or a document."""

_KEPT_ROLES = ("user", "assistant")
"""Whose words become memories; those of tools and systems are evidence at most."""

TYPE_OF: Mapping[captures.MessageClass, MemoryType] = {
    "preference": "semantic",
    "fact": "semantic",
    "decision": "semantic",
    "procedure": "procedural",
    "mistake": "procedural",
    "task": "episodic",
    "event": "episodic",
}
POOL_OF: Mapping[captures.MessageClass, str] = {"mistake": "agent_mistakes"}
"""Where a class has a pool of its own."""
_LABELS = "labels"
"""The key of metadata that holds them."""


@dataclass(frozen=True, slots=True)
class Captured:
    """One memory that was made of messages.

    Attributes:
        id, text, type, importance: Of the memory.
        class_: What it is about: a preference, fact, decision, procedure, mistake, task or event.
        entities: What it names.
        labels: Those of the given ones that fit it; the memory has them.
        evidence: The messages that it is made of, by their places from 0.
    """

    id: str
    text: str
    class_: captures.MessageClass
    type: MemoryType
    importance: float
    entities: tuple[services.Entity, ...]
    labels: tuple[str, ...]
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """What became of messages.

    Attributes:
        kept: The memories, in the order of the messages.
        dropped: Messages that are in no memory's evidence, by their places from 0.
        redactions: How many secrets were cut out.
        steering: Messages that try to steer a model, which are dropped too.
        added: How many of the memories are new; the others were there already.
    """

    kept: tuple[Captured, ...]
    dropped: tuple[int, ...]
    redactions: int
    steering: tuple[int, ...]
    added: int = 0


def _check_names(**names: object) -> None:
    for name, value in names.items():
        if value is not None and not isinstance(value, str):
            raise InvalidInput(name, value, "must be a string", "Give a name, or leave it out")


def capture(  # noqa: PLR0913  where it goes, and how it is read
    engine: Engine,
    scope: Scope,
    messages: Sequence[Mapping[str, Any]],
    *,
    session: str | None,
    source: str | None,
    labels: Sequence[str],
    redact: bool,
    since: int,
    chat: Chat | None,
) -> CaptureReport:
    """Keep what is worth remembering of messages; repeating it adds nothing but labels.

    Where a chat model is given it writes each memory as a sentence that is understood alone; what
    was said stays in the metadata, and decides whether the memory is there already.
    """
    services.check_labels(labels)
    _check_names(session=session, source=source)
    given = read_messages(messages)
    _check_since(since, len(given))
    # Those before may be needed to understand what follows, and others to understand those.
    first = max(0, since - 2 * captures.MOST_REACHED)
    reader = captures.bundled_capture_reader()
    clean = CleanedMessages(given[first:], 0, frozenset())
    if redact:
        clean = clean_messages(given[first:], reader, known=values_of(given[:first]))
    readings = reader.read([each.message for each in clean.messages])
    read = [
        _Read(
            first + place,
            without_secrets(each, said_secrets(reading)) if redact else each,
            reading,
            _find_entities(each.message.text, reading),
            _steers(each.message, reading),
        )
        for place, (each, reading) in enumerate(zip(clean.messages, readings, strict=True))
    ]
    finder = services.configured_entity_finder(read_settings())
    chosen = _join_repeated(
        _choose(read[: place + 1], finder)
        for place, each in enumerate(read)
        if each.place >= since and _is_kept(each, reader)
    )
    told = None if source is None else clean.cut(source)
    drafts = _make_drafts(scope, chosen, session=session, source=told)
    found, added = _write(engine, scope, drafts, chosen, labels=labels, chat=chat)
    used = {place for each in found for place in each.evidence}
    return CaptureReport(
        kept=tuple(found),
        dropped=tuple(place for place in range(since, len(given)) if place not in used),
        redactions=clean.redactions,
        steering=tuple(each.place for each in read if each.place >= since and each.steers),
        added=added,
    )


def _check_since(since: object, count: int) -> None:
    if isinstance(since, bool) or not isinstance(since, int) or not 0 <= since <= count:
        problem = f"must be a number of messages, from 0 to {count}"
        raise InvalidInput("since", since, problem, "Leave it out to read all")


@dataclass(frozen=True, slots=True)
class _Read:
    """A message as it was read.

    Attributes:
        place: Among those that were given.
        given: Without its secrets.
        reading: What the model says of it.
        entities: What it names.
        steers: Whether it tries to steer a model.
    """

    place: int
    given: GivenMessage
    reading: captures.MessageReading
    entities: list[services.Entity]
    steers: bool


def _find_entities(text: str, reading: captures.MessageReading) -> list[services.Entity]:
    """Return what a message names."""
    found = (
        services.Entity(text[span.start : span.end], span.kind)
        for span in reading.spans
        if span.kind != "secret" and REDACTED not in text[span.start : span.end]
    )
    return _clean_names(found)


def _clean_names(entities: Iterable[services.Entity]) -> list[services.Entity]:
    """Return entities, persons without titles; a title, number or letter alone names nothing."""
    cleaned = (
        replace(each, text=without_title(each.text)) if each.kind == "person" else each
        for each in entities
    )
    return [each for each in cleaned if len(each.text) > 1 and any(map(str.isalpha, each.text))]


def without_title(name: str) -> str:
    """Return a person's name without the titles before it; empty where it is a title alone."""
    words = name.split()
    while words and words[0].rstrip(".").casefold() in _titles():
        del words[0]
    return " ".join(words)


@lru_cache(1)
def _titles() -> frozenset[str]:
    text = files("ekphory.capture").joinpath("names.toml").read_text("utf-8")
    return frozenset(tomllib.loads(text)["titles"])


def _steers(message: captures.DialogueMessage, reading: captures.MessageReading) -> bool:
    return reading.steers >= LEAST_STEERING or find_injection(message.text).is_injection


def _is_kept(each: _Read, reader: captures.CaptureReader) -> bool:
    message, sure = each.given.message, sum(each.reading.classes) >= reader.least
    worded = _has_words(message.text)
    return sure and worded and not each.steers and message.role in _KEPT_ROLES


def _has_words(text: str) -> bool:
    """Return whether a message says something, beside a secret that was cut out of it.

    One word more names what the secret is for ("the staging password is").
    """
    words = _WORDS.findall(text.replace(REDACTED, " ").replace("’", "'").casefold())
    if REDACTED not in text:
        return bool(text.strip())
    return sum(word not in _EMPTY_WORDS for word in words) > 1


_WORDS = re.compile(r"\w+(?:'\w+)*")


_PHRASES = tomllib.loads(files(__package__).joinpath("phrases.toml").read_text("utf-8"))
_GREETING, _POINTS_BACK, _SAYS_AGAIN = (
    re.compile(_PHRASES[name], re.VERBOSE | re.IGNORECASE)
    for name in ("greeting", "points_back", "says_again")
)
_EMPTY_WORDS = frozenset(_PHRASES["empty_words"])


def without_greeting(text: str) -> str:
    """Return a message without the greeting that it begins with, where that is a sentence.

    A message that is a greeting alone stays as it is.
    """
    found = _GREETING.match(text)
    return (text[found.end() :].strip() if found else "") or text


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What is to be written of one message."""

    text: str
    class_: captures.MessageClass
    entities: tuple[services.Entity, ...]
    evidence: tuple[int, ...]
    message: captures.DialogueMessage
    at: datetime | None


def _choose(read: Sequence[_Read], finder: services.EntityFinder | None) -> _Chosen:
    """Return the memory that the last of some messages tells.

    What it names is found by `finder`, or else was read.
    """
    last = read[-1]
    before = read[-1 - _count_needed(read) : -1]
    needed = [each for each in before if not each.steers and each.given.message.text.strip()]
    # What a tool printed is evidence, and no words of anybody's.
    told = [each.given.message for each in needed if each.given.message.role in _KEPT_ROLES]
    context = [without_greeting(each.text)[-_LONGEST_CONTEXT:] for each in told]
    # Whoever tells it is named by it; who said what came before only where somebody names them.
    name = last.given.message.speaker
    is_name = bool(name) and not find_secrets(name)
    teller = _clean_names([services.Entity(name, "person")]) if is_name else []
    named = [named for each in (*needed, last) for named in _named(each, finder)]
    entities = [*teller, *named]
    return _Chosen(
        text="\n".join([*context, without_greeting(last.given.message.text)[:_LONGEST_KEPT]]),
        class_=_class_of(last),
        entities=tuple(dict.fromkeys(entities)),
        evidence=tuple(each.place for each in (*needed, last)),
        message=last.given.message,
        at=last.given.at,
    )


def _join_repeated(chosen: Iterable[_Chosen]) -> list[_Chosen]:
    """Return what is to be written; what says the same again is evidence of what said it first.

    The same is said in the same words: texts that lie near each other may contradict each other.
    What was not understood alone may mean something else the second time.
    """
    kept: list[_Chosen] = []
    alone: dict[tuple[str, str, tuple[str, ...]], int] = {}
    for each in chosen:
        said = each.message.role, each.message.speaker, _bare_words(each.message.text)
        place = alone.get(said)
        if place is not None:
            evidence = (*kept[place].evidence, each.evidence[-1])
            kept[place] = replace(kept[place], evidence=evidence)
            continue
        if len(each.evidence) == 1:
            alone[said] = len(kept)
        kept.append(each)
    return kept


def _bare_words(text: str) -> tuple[str, ...]:
    """Return the words of a message, without those before it that say that it is said again."""
    found = _SAYS_AGAIN.match(text)
    rest = text[found.end() :] if found else ""
    return tuple(_WORDS.findall((rest or text).casefold()))


def _class_of(read: _Read) -> captures.MessageClass:
    """Return what a message is about; only people say what they prefer.

    What an assistant tells of it is a fact at most, and may stand in a page that it read.
    """
    classes = read.reading.classes
    found = captures.MESSAGE_CLASSES[classes.index(max(classes))]
    return "fact" if found == "preference" and read.given.message.role != "user" else found


def _count_needed(read: Sequence[_Read]) -> int:
    """Return how many messages before the last one are needed to understand it.

    One that begins by pointing back ("that's the load balancer") is not understood without what
    was said right before it, whatever was read; what a tool printed is not what it points at.
    """
    last = read[-1]
    if last.reading.reaches or len(read) == 1 or read[-2].given.message.role == "tool":
        return last.reading.reaches
    text = without_greeting(last.given.message.text)
    return 1 if _POINTS_BACK.match(text) else 0


def _named(read: _Read, finder: services.EntityFinder | None) -> list[services.Entity]:
    if finder is None:
        return read.entities
    found = finder.find_entities(read.given.message.text)
    return [entity for entity in found if REDACTED not in entity.text]


def _make_drafts(
    scope: Scope, chosen: Sequence[_Chosen], *, session: str | None, source: str | None
) -> list[Draft]:
    now = now_utc()
    return [
        make_draft(
            {
                "text": each.text,
                "at": each.at,
                "producer": find_and_cut(each.message.told_by)[0],
                "role": each.message.role,
                "session": session,
                "source": source,
                "type": TYPE_OF[each.class_],
                "pool": POOL_OF.get(each.class_, DEFAULT_POOL),
                "metadata": _metadata(each),
            },
            scope=scope,
            now=now,
        )
        for each in chosen
    ]


def _write(
    engine: Engine,
    scope: Scope,
    drafts: Sequence[Draft],
    chosen: Sequence[_Chosen],
    *,
    labels: Sequence[str],
    chat: Chat | None,
) -> tuple[list[Captured], int]:
    """Write what is not there yet; return all memories, and how many of them are new."""
    said = [draft.record.text for draft in drafts]
    fitting = services.find_labels(said, labels, services.configured_label_scorer(read_settings()))
    sentences = [None] * len(said) if chat is None else services.write_sentences(said, chat)
    finished = [
        _finish(draft, labels=labels, sentence=sentence)
        for draft, labels, sentence in zip(drafts, fitting, sentences, strict=True)
    ]
    there = _find_captured(engine, scope, drafts, chosen)
    new = [draft for draft, known in zip(finished, there, strict=True) if known is None]
    report = add_drafts(engine, scope, new) if new else WriteReport(0, 0, [])
    written = iter(report.ids)
    records = [
        _label(engine, scope, known or next(written), its_labels)
        for known, its_labels in zip(there, fitting, strict=True)
    ]
    kept = [
        Captured(
            id=record.id,
            text=record.text,
            class_=each.class_,
            type=record.type,
            importance=record.importance,
            entities=each.entities,
            labels=its_labels,
            evidence=each.evidence,
        )
        for each, its_labels, record in zip(chosen, fitting, records, strict=True)
    ]
    return kept, report.added


def _label(engine: Engine, scope: Scope, memory_id: str, labels: Sequence[str]) -> MemoryRecord:
    """Return a memory; one that was there already and lacks a label gets it beside its own."""
    record = get(engine, scope, memory_id)
    if set(labels) <= set(_labels_of(record)):
        return record

    def add(before: MemoryRecord) -> dict[str, Any]:
        joined = SEPARATOR.join(dict.fromkeys((*_labels_of(before), *labels)))
        return {"metadata": {**before.metadata, _LABELS: joined}}

    return change(engine, scope, memory_id, add)


def _labels_of(record: MemoryRecord) -> list[str]:
    told = record.metadata.get(_LABELS)
    return told.split(SEPARATOR) if isinstance(told, str) else []


def _find_captured(
    engine: Engine, scope: Scope, drafts: Sequence[Draft], chosen: Sequence[_Chosen]
) -> list[str | None]:
    """Return of each draft the id of the memory that is its message, whoever captured it.

    A message is known again by its session, its role and its moment, and by its text or its
    place; one that no moment is told of, by its text.
    """
    session = drafts[0].record.session if drafts else None
    if session is None:
        return [None] * len(drafts)
    where = in_view(scope, Comparison(Field("session"), "eq", session))
    known: dict[tuple[object, ...], str] = {}
    for record in engine.store.select(where, order="newest"):
        if "evidence" in record.metadata:
            said = record.metadata.get("said", record.text)
            known[record.role, said] = record.id
            known[record.role, record.at, said] = record.id
            known[record.role, record.at, record.metadata["evidence"], "place"] = record.id
    found = []
    for draft, each in zip(drafts, chosen, strict=True):
        role, text, at = draft.record.role, draft.record.text, each.at
        place = draft.record.metadata["evidence"]
        names = [(role, text)] if at is None else [(role, at, text), (role, at, place, "place")]
        found.append(next((known[name] for name in names if name in known), None))
    return found


def _finish(draft: Draft, *, labels: Sequence[str], sentence: str | None) -> Draft:
    """Return a draft with its labels, and with the sentence as its text; it stays the same one."""
    record = draft.record
    metadata = dict(record.metadata)
    if labels:
        metadata[_LABELS] = SEPARATOR.join(labels)
    if sentence is not None:
        metadata["said"] = record.text
    text = record.text if sentence is None else sentence
    return replace(draft, record=replace(record, text=text, metadata=metadata))


def _metadata(each: _Chosen) -> dict[str, Scalar]:
    """Return what filters can ask for; several entities stand in one text."""
    told: dict[str, Scalar] = {"class": each.class_, "evidence": ",".join(map(str, each.evidence))}
    if each.entities:
        told[services.ENTITIES] = services.join_entities(each.entities)
    return told
