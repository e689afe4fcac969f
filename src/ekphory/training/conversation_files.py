"""Reads the conversations that were written for training, and what is asked of them.

A file holds one conversation of two people over weeks, and after it its questions:

    kind: friends
    ## 1 | 2022-11-03 19:40
    1.1 Ilse: I finally signed the lease, moving my looms over on Saturday.
    1.2 Ruben: Congrats! Which looms?
    ? temporal | 1.1 | When did Ilse move her looms? | Saturday 5 November 2022

`## session | time`, `session.turn speaker: text`, `? category | turns that answer | question |
answer`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ekphory.errors import DatasetError
from ekphory.training.training_rows import Row

CONVERSATIONS = Path(__file__).parent / "conversations"
CATEGORIES = ("single", "multi", "temporal", "inference", "update")
KINDS = ("friends", "texting", "assistant")

_KIND = re.compile(r"kind: (\w+)")
_SESSION = re.compile(r"## (\d+) \| (\d{4}-\d\d-\d\d \d\d:\d\d)")
_TURN = re.compile(r"(\d+\.\d+) ([^:]{1,30}): (.+)")
_QUESTION = re.compile(r"\? (\w+) \| ([\d. ]+) \| ([^|]+) \| ([^|]+)")


def read_conversations(folder: Path = CONVERSATIONS) -> list[Row]:
    """Read every file of a folder, in the order of their names.

    Returns:
        For each file `id`, `kind`, `turns` (`session`, `at`, `speaker`, `text`) and `questions`
        (`category`, `turns` as places in that list, `query`, `answer`).

    Raises:
        DatasetError: There is no file, or one cannot be read.
    """
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        raise DatasetError(f"{folder}: holds no conversation. Give a folder of *.txt files.")
    return [read_conversation(path) for path in paths]


def read_conversation(path: Path) -> Row:
    """Read one file.

    Raises:
        DatasetError: A line cannot be read, or names what is not there.
    """
    reader = _Reader(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: cannot be read as UTF-8 ({error}).") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            reader.read(line.strip(), number)
    return reader.row()


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._kind = ""
        self._sessions: list[datetime] = []
        self._turns: list[Row] = []
        self._places: dict[str, int] = {}
        self._questions: list[Row] = []

    def read(self, line: str, number: int) -> None:
        if kind := _KIND.fullmatch(line):
            self._kind = _one_of(kind[1], KINDS, self._place(number))
        elif session := _SESSION.fullmatch(line):
            self._add_session(session, number)
        elif turn := _TURN.fullmatch(line):
            self._add_turn(turn, number)
        elif question := _QUESTION.fullmatch(line):
            self._add_question(question, number)
        else:
            place = self._place(number)
            raise DatasetError(f"{place}: {line[:60]!r} is no line of a conversation.")

    def row(self) -> Row:
        if not (self._kind and self._questions):
            raise DatasetError(f"{self._path}: no kind, or no question. Give the whole file.")
        return {
            "id": self._path.stem,
            "kind": self._kind,
            "turns": self._turns,
            "questions": self._questions,
        }

    def _add_session(self, found: re.Match[str], number: int) -> None:
        try:
            at = datetime.strptime(found[2], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        except ValueError as error:
            raise DatasetError(f"{self._place(number)}: {found[2]} is no time.") from error
        follows = not self._sessions or at > self._sessions[-1]
        if int(found[1]) != len(self._sessions) + 1 or not follows:
            raise DatasetError(f"{self._place(number)}: sessions count from 1 and follow in time.")
        self._sessions.append(at)

    def _add_turn(self, found: re.Match[str], number: int) -> None:
        session = len(self._sessions)
        if found[1].split(".")[0] != str(session) or found[1] in self._places:
            raise DatasetError(f"{self._place(number)}: turn {found[1]} is not of this session.")
        self._places[found[1]] = len(self._turns)
        self._turns.append(
            {
                "session": session - 1,
                "at": self._sessions[-1].isoformat(),
                "speaker": found[2],
                "text": found[3],
            }
        )

    def _add_question(self, found: re.Match[str], number: int) -> None:
        answering = found[2].split()
        missing = [name for name in answering if name not in self._places]
        if missing or not answering:
            named = ", ".join(missing) or "is named"
            raise DatasetError(f"{self._place(number)}: no turn {named}.")
        self._questions.append(
            {
                "category": _one_of(found[1], CATEGORIES, self._place(number)),
                "turns": sorted({self._places[name] for name in answering}),
                "query": found[3].strip(),
                "answer": found[4].strip(),
            }
        )

    def _place(self, number: int) -> str:
        return f"{self._path}, line {number}"


def _one_of(value: str, known: Sequence[str], place: str) -> str:
    if value not in known:
        raise DatasetError(f"{place}: {value!r} is none of {', '.join(known)}.")
    return value
