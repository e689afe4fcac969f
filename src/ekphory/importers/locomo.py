"""LoCoMo's own file: parsed once here, for the import and for the evaluation.

The benchmark (Maharana et al. 2024, "Evaluating Very Long-Term Conversational Memory of LLM
Agents") is one JSON array of conversations; each holds `session_1`, `session_1_date_time`, … and
the questions under `qa`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from ekphory.errors import DatasetError, InvalidInput
from ekphory.importers import source
from ekphory.types import MONTHS

_SESSION = re.compile(r"session_(\d+)")
_MOMENT = re.compile(r"(\d{1,2}):(\d{2}) ([ap]m) on (\d{1,2}) (\w+),? (\d{4})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LocomoTurn:
    """One turn of a conversation.

    Attributes:
        id: The benchmark's id, such as `D1:3`; unique within the conversation.
        session: Number of the session, from 1.
        sequence: Position in the whole conversation, from 0.
        speaker: Who says it.
        listener: To whom; empty where the file names no second speaker.
        at: Beginning of the session, in UTC.
        text: What is said, with the caption of a shared photo behind it.
    """

    id: str
    session: int
    sequence: int
    speaker: str
    listener: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class LocomoQuestion:
    """One question about a conversation.

    Attributes:
        text: The question.
        answer: The reference answer; empty for an adversarial question.
        evidence: Ids of the turns that answer it, as the file gives them.
        category: The benchmark's category, 1 to 5.
    """

    text: str
    answer: str
    evidence: tuple[str, ...]
    category: int


@dataclass(frozen=True, slots=True)
class LocomoConversation:
    """One conversation with its questions.

    Attributes:
        id: The benchmark's sample id, such as `conv-26`.
        turns: All turns, in order.
        questions: All questions, in order.
    """

    id: str
    turns: tuple[LocomoTurn, ...]
    questions: tuple[LocomoQuestion, ...]


@dataclass(frozen=True, slots=True)
class _Sample:
    id: str
    talk: Mapping[str, object]
    questions: list[object]


_Found = TypeVar("_Found", _Sample, LocomoTurn)


def read_conversations(path: Path) -> Iterator[LocomoConversation]:
    """Read all conversations and their questions, one at a time.

    Raises:
        DatasetError: The file is missing, or anything in it does not have LoCoMo's form.
    """
    if not path.is_file():
        raise DatasetError(f"path={str(path)!r}: no such file. Give LoCoMo's JSON file.")
    for sample in map(_refuse_unreadable, _read_samples(path)):
        turns = tuple(map(_refuse_unreadable, _read_turns(sample)))
        yield LocomoConversation(sample.id, turns, tuple(_read_questions(sample)))


def read_locomo(
    path: Path, *, conversation: str | None = None, project: str | None = None
) -> Iterator[source.Readable]:
    """Read the turns of LoCoMo's own file as records.

    Ids repeat from one conversation to the next, so each conversation is a project of its own,
    named by its sample id, unless a project is given for the one conversation that is read.

    Args:
        path: LoCoMo's JSON file.
        conversation: Sample id of the only conversation to read; None reads all.
        project: Project that the writer is bound to, if any. Without `conversation` it must be
            the name of a conversation, which is then the only one read.

    Yields:
        One record per turn, or one `Unreadable` per broken turn or conversation.

    Raises:
        InvalidInput: No conversation has that sample id.
    """
    wanted = conversation if conversation is not None else project
    known: list[str] = []
    for sample in _read_samples(path):
        if isinstance(sample, source.Unreadable):
            yield sample
            continue
        known.append(sample.id)
        if wanted is not None and sample.id != wanted:
            continue
        for turn in _read_turns(sample):
            if isinstance(turn, source.Unreadable):
                yield turn
            else:
                fields = _make_fields(turn, project or sample.id)
                yield source.ImportedRecord(fields, f"{sample.id}: {turn.id}")
    if wanted is not None and wanted not in known:
        held = ", ".join(known[:20]) or "none"
        problem = f"{path.name} has no such conversation; it holds {held}"
        remedy = "Name one of them as the conversation, or bind no project to import all."
        raise InvalidInput("conversation", wanted, problem, remedy)


def _make_fields(turn: LocomoTurn, project: str) -> dict[str, object]:
    return {
        "id": turn.id,
        "text": turn.text,
        "at": turn.at,
        "project": project,
        "producer": turn.speaker,
        "produced_for": turn.listener,
        "session": str(turn.session),
        "sequence": turn.sequence,
        "source": "locomo",
    }


def _read_samples(path: Path) -> Iterator[_Sample | source.Unreadable]:
    for found in source.stream_elements(path, "conversation"):
        yield found if isinstance(found, source.Unreadable) else _read_sample(*found)


def _read_sample(place: str, element: object) -> _Sample | source.Unreadable:
    if not isinstance(element, dict) or not isinstance(element.get("conversation"), dict):
        return source.Unreadable(place, "conversation", "LoCoMo's `conversation` is missing here.")
    sample_id = element.get("sample_id")
    if not isinstance(sample_id, str) or not sample_id:
        return source.Unreadable(place, "sample_id", "LoCoMo's `sample_id` is missing here.")
    return _Sample(sample_id, element["conversation"], source.read_list(element.get("qa")))


def _read_turns(sample: _Sample) -> Iterator[LocomoTurn | source.Unreadable]:
    numbers = sorted(int(match[1]) for key in sample.talk if (match := _SESSION.fullmatch(key)))
    sequence = 0
    for number in numbers:
        for position, turn in enumerate(source.read_list(sample.talk[f"session_{number}"])):
            place = f"{sample.id}: session {number}, turn {position}"
            yield _read_turn(sample, turn, session=number, sequence=sequence, place=place)
            sequence += 1


def _read_turn(
    sample: _Sample, turn: object, *, session: int, sequence: int, place: str
) -> LocomoTurn | source.Unreadable:
    if not isinstance(turn, dict):
        return source.Unreadable(place, "turn", "not an object.", str(turn)[:500])
    for key in ("dia_id", "speaker", "text"):
        if not isinstance(turn.get(key), str):
            reason = f"LoCoMo's `{key}` is missing here."
            return source.Unreadable(place, key, reason, str(turn)[:500])
    written = sample.talk.get(f"session_{session}_date_time")
    at = _read_time(written)
    if at is None:
        reason = f"{written!r} is not a moment such as '1:56 pm on 8 May, 2023'."
        return source.Unreadable(place, f"session_{session}_date_time", reason)
    return LocomoTurn(
        id=turn["dia_id"],
        session=session,
        sequence=sequence,
        speaker=turn["speaker"],
        listener=_find_listener(sample.talk, turn["speaker"]),
        at=at,
        text=_add_caption(turn["text"], turn.get("blip_caption")),
    )


def _find_listener(talk: Mapping[str, object], speaker: str) -> str:
    names = [talk.get("speaker_a"), talk.get("speaker_b")]
    others = [name for name in names if isinstance(name, str) and name != speaker]
    return others[0] if len(others) == 1 else ""


def _add_caption(text: str, caption: object) -> str:
    shared = f"[shares a photo: {caption}]" if isinstance(caption, str) and caption else ""
    return f"{text} {shared}".strip() if shared else text


def _read_time(written: object) -> datetime | None:
    match = _MOMENT.fullmatch(written.strip()) if isinstance(written, str) else None
    if match is None or match[5].capitalize() not in MONTHS:
        return None
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "pm" else 0)
    month = MONTHS.index(match[5].capitalize()) + 1
    try:
        return datetime(int(match[6]), month, int(match[4]), hour, int(match[2]), tzinfo=UTC)
    except ValueError:
        return None


def _read_questions(sample: _Sample) -> Iterator[LocomoQuestion]:
    for position, question in enumerate(sample.questions):
        place = f"{sample.id}: question {position}"
        if not isinstance(question, dict) or not isinstance(question.get("question"), str):
            raise DatasetError(f"{place}: question: LoCoMo's `question` is missing.")
        category = question.get("category")
        if not isinstance(category, int):
            raise DatasetError(f"{place}: category: {category!r} is not a number.")
        evidence = tuple(map(str, source.read_list(question.get("evidence"))))
        answer = str(question.get("answer", ""))
        yield LocomoQuestion(question["question"], answer, evidence, category)


def _refuse_unreadable(found: _Found | source.Unreadable) -> _Found:
    if isinstance(found, source.Unreadable):
        raise DatasetError(f"{found.place}: {found.field}: {found.message}")
    return found
