"""Dialogues without their secrets: what is one in a message is cut out of all of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ekphory.capture.secrets import (
    REDACTED,
    Secret,
    cut_out,
    find_answers,
    find_secrets,
    merge_secrets,
)
from ekphory.capture.transcript import GivenMessage
from ekphory.errors import InvalidInput
from ekphory.models import captures
from ekphory.types import check_records, is_storable

_SHORTEST_REPEATED, _FEW_DIGITS = 4, 6
"""Characters of a secret that is looked for in the other messages too, and of one of digits."""


@dataclass(frozen=True, slots=True)
class CleanedMessages:
    """Messages without their secrets.

    Attributes:
        messages: In their order.
        redactions: How many secrets were found, each where it was told as one.
        values: What the secrets were.
    """

    messages: list[GivenMessage]
    redactions: int
    values: frozenset[str] = field(repr=False)

    def cut(self, text: str) -> str:
        """Return another text of the dialogue without the secrets, its own ones too."""
        return _as_given(_cut_all(_as_message(text), _compile_repeats(self.values)), text)


def clean_messages(
    given: Sequence[GivenMessage],
    reader: captures.CaptureReader,
    *,
    known: Iterable[str] = (),
    read: Collection[int] | None = None,
) -> CleanedMessages:
    """Cut out of messages the secrets that rules and the reader find.

    What is a secret in one message is cut out of all of them, unless it is so short that it may be
    anything.

    Args:
        given: Messages of one dialogue, in their order.
        reader: Finds what rules do not.
        known: Secrets of messages before.
        read: The places of those that are read; the others are searched by rules alone.
    """
    found = [
        rule_secrets(each.message, [before.message.text for before in given[max(0, n - 2) : n]])
        for n, each in enumerate(given)
    ]
    count = sum(map(len, found))
    values = {*known, *_cut_values(given, found)}
    by_rule = [without_secrets(each, secrets) for each, secrets in zip(given, found, strict=True)]
    said = _read_secrets(by_rule, reader, range(len(given)) if read is None else read)
    count += sum(
        REDACTED not in _cut(each, secret)
        for each, secrets in zip(by_rule, said, strict=True)
        for secret in secrets
    )
    values |= _cut_values(by_rule, said)
    cleaned = [without_secrets(each, secrets) for each, secrets in zip(by_rule, said, strict=True)]
    repeated = _compile_repeats(values)
    messages = [without_secrets(each, _repeats(each.message.text, repeated)) for each in cleaned]
    return CleanedMessages(messages, count, frozenset(values))


def _read_secrets(
    given: Sequence[GivenMessage], reader: captures.CaptureReader, read: Collection[int]
) -> list[list[Secret]]:
    found: list[list[Secret]] = [[] for _ in given]
    places = sorted(read)
    readings = reader.read([given[place].message for place in places])
    for place, reading in zip(places, readings, strict=True):
        found[place] = said_secrets(reading)
    return found


def said_secrets(reading: captures.MessageReading) -> list[Secret]:
    """Return the secrets that a reader found in a message."""
    return [Secret(span.start, span.end, "said") for span in reading.spans if span.kind == "secret"]


def rule_secrets(message: captures.DialogueMessage, before: Sequence[str] = ()) -> list[Secret]:
    """Return what rules find in a text; the name before it may be what tells that it is one.

    Where one of the messages before asks for a secret, its answer is one.
    """
    prefix = f"{message.speaker}: " if message.speaker else ""
    shift = len(prefix)
    found = [
        Secret(max(0, each.start - shift), each.end - shift, each.rule)
        for each in find_secrets(prefix + message.text)
        if each.end > shift
    ]
    return merge_secrets([*found, *find_answers(message.text, before)])


def values_of(given: Sequence[GivenMessage]) -> set[str]:
    """Return the secrets that rules find in messages."""
    return _cut_values(given, [rule_secrets(each.message) for each in given])


def _cut_values(given: Sequence[GivenMessage], found: Sequence[Sequence[Secret]]) -> set[str]:
    values = {
        _cut(each, secret).strip(_STANDS_IN)
        for each, secrets in zip(given, found, strict=True)
        for secret in secrets
    }
    return {value for value in values if REDACTED not in value}


def _compile_repeats(values: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds secrets where they stand alone; few digits may be any number."""
    kept = [
        re.escape(value)
        for value in sorted(values, key=len, reverse=True)
        if len(value) >= (_FEW_DIGITS if value.isdigit() else _SHORTEST_REPEATED)
    ]
    return re.compile(rf"(?<!\w)(?:{'|'.join(kept)})(?!\w)") if kept else None


def _repeats(text: str, repeated: re.Pattern[str] | None) -> list[Secret]:
    found = repeated.finditer(text) if repeated is not None else ()
    return [Secret(*match.span(), "repeated") for match in found]


def _cut_all(each: GivenMessage, repeated: re.Pattern[str] | None) -> str:
    """Return a text without the secrets that rules find in it, and without repeated ones."""
    own = without_secrets(each, rule_secrets(each.message))
    return without_secrets(own, _repeats(own.message.text, repeated)).message.text


def without_secrets(each: GivenMessage, secrets: Sequence[Secret]) -> GivenMessage:
    """Return a message without some secrets."""
    if not secrets:
        return each
    text = cut_out(each.message.text, merge_secrets(secrets))
    return replace(each, message=replace(each.message, text=text))


def _cut(each: GivenMessage, secret: Secret) -> str:
    return each.message.text[secret.start : secret.end]


# What is to be written, by a caller or an import.

_AT_ONCE, _MOST_AT_ONCE, _MOST_CHARACTERS = 128, 4_096, 4_000_000
"""Records that are cleaned together, more where a dialogue goes on, and characters of them."""
_SAID_BY_MACHINES = frozenset({"assistant", "tool", "system"})
_NAMING = ("source", "path", "producer", "produced_for")
"""Fields of a record beside its text and its metadata that may hold a secret."""
_STAND_INS = {code: 0xF0000 + code for code in (0, *range(0xD800, 0xE000))}
"""What is read in place of what no store can hold: so a secret beside it is found and cut out."""
_AS_GIVEN = {stand_in: code for code, stand_in in _STAND_INS.items()}
_STANDS_IN = "".join(map(chr, _AS_GIVEN))

_Record = Mapping[str, Any]


def clean_text(text: str) -> str:
    """Return a text without the secrets that are found in it; other values as they are."""
    if not isinstance(text, str):
        return text
    cleaned = clean_messages([_as_message(text)], captures.bundled_capture_reader())
    return _as_given(cleaned.messages[0].message.text, text)


def clean_records(records: Iterable[_Record]) -> Iterator[_Record]:
    """Yield records to be written without the secrets in their texts; other values as they are.

    What machines say, and metadata, is searched by rules alone, what people say is read too. What
    is a secret in one record is cut out of all of its session that stand in a row, and of those
    that follow later.
    """
    check_records(records)
    known: dict[str, frozenset[str]] = {}
    for window in _gather_dialogues(records):
        cleaned = list(window)
        dialogues: dict[str | None, list[int]] = defaultdict(list)
        for place, each in enumerate(window):
            dialogues[_session_of(each)].append(place)
        for session, places in dialogues.items():
            before = known.get(session, frozenset()) if session is not None else frozenset()
            told, values = _clean_dialogue([window[place] for place in places], before)
            for place, each in zip(places, told, strict=True):
                cleaned[place] = each
            if session is not None and values:
                known[session] = values
        yield from cleaned


def _gather_dialogues(records: Iterable[_Record]) -> Iterator[list[_Record]]:
    """Gather records, bounded in number and length, so that dialogues stay whole where they can."""
    window: list[_Record] = []
    characters = 0
    try:
        for each in records:
            session = _session_of(each)
            goes_on = bool(window) and session is not None and session == _session_of(window[-1])
            least = _MOST_AT_ONCE if goes_on else _AT_ONCE
            if len(window) >= least or characters >= _MOST_CHARACTERS:
                yield window
                window, characters = [], 0
            window.append(each)
            characters += len(each["text"]) if _has_text(each) else 0
    except InvalidInput:
        # What came before the input broke is still written.
        if window:
            yield window
        raise
    if window:
        yield window


def _clean_dialogue(
    records: Sequence[_Record], known: frozenset[str]
) -> tuple[list[_Record], frozenset[str]]:
    """Return records of one session without secrets, and what the secrets were."""
    worded = [each for each in records if _has_text(each)]
    notes = {note: _as_message(note[1], note[0]) for each in records for note in _notes_of(each)}
    cleaned = clean_messages(
        [_as_message(each["text"]) for each in worded],
        captures.bundled_capture_reader(),
        known=known | values_of(list(notes.values())),
        read=[place for place, each in enumerate(worded) if _is_said(each)],
    )
    repeated = _compile_repeats(cleaned.values)
    told = {note: _as_given(_cut_all(each, repeated), note[1]) for note, each in notes.items()}
    texts = (each.message.text for each in cleaned.messages)
    return [_with_texts(each, texts, told) for each in records], cleaned.values


def _with_texts(
    record: _Record, texts: Iterator[str], notes: Mapping[tuple[str, str], str]
) -> _Record:
    if not isinstance(record, Mapping):
        return record
    changed = dict(record)
    if _has_text(record):
        changed["text"] = _as_given(next(texts), record["text"])
    for name in _NAMING:
        if isinstance(record.get(name), str):
            changed[name] = notes["", record[name]]
    if isinstance(record.get("metadata"), Mapping):
        changed["metadata"] = {
            name: notes[str(name), value] if isinstance(value, str) else value
            for name, value in record["metadata"].items()
        }
    return changed


def _notes_of(record: _Record) -> Iterator[tuple[str, str]]:
    """Yield the texts of a record beside what was said, each with the name that it has."""
    if not isinstance(record, Mapping):
        return
    metadata = record.get("metadata")
    for name, value in metadata.items() if isinstance(metadata, Mapping) else ():
        if isinstance(value, str):
            yield str(name), value
    for name in _NAMING:
        if isinstance(record.get(name), str):
            yield "", record[name]


def _as_message(text: str, name: str = "") -> GivenMessage:
    readable = text if is_storable(text) else text.translate(_STAND_INS)
    return GivenMessage(captures.DialogueMessage("user", readable, name), None)


def _as_given(cleaned: str, text: str) -> str:
    """Return what was cleaned of a text with what stood in it and no store can hold."""
    return cleaned if is_storable(text) else cleaned.translate(_AS_GIVEN)


def _session_of(record: object) -> str | None:
    session = record.get("session") if isinstance(record, Mapping) else None
    return session if isinstance(session, str) else None


def _has_text(record: object) -> bool:
    return isinstance(record, Mapping) and isinstance(record.get("text"), str)


def _is_said(record: _Record) -> bool:
    """Return whether a person said it."""
    role = record.get("role")
    return not (isinstance(role, str) and role in _SAID_BY_MACHINES)
