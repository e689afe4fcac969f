"""The texts that were written for training, and the rows of training files."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from ekphory.errors import DatasetError
from ekphory_lab.training.question_groups import WORDS, Question, QuestionGroup
from ekphory_lab.training.static_int8 import CalibrationSource

# Reads the training files: JSON Lines, compressed.

Row = dict[str, Any]

_NOISE = re.compile(r"\{\w+\}|\[\w*\]|-lrb-|-rrb-|``|''")
_SPACE_BEFORE = re.compile(r"\s+([.,!?;:'%])")


def each_row(path: Path) -> Iterator[Row]:
    """Yield every row.

    Raises:
        DatasetError: The file is missing or holds something else.
    """
    is_compressed = path.suffix == ".gz"
    try:
        read = gzip.open if is_compressed else open
        with read(path, "rt", encoding="utf-8") as lines:
            for line in filter(str.strip, lines):
                yield _parse_row(path, line)
    except FileNotFoundError as error:
        raise DatasetError(
            f"{path}: no such file. Give the folder with the training data."
        ) from error
    except (ValueError, OSError, EOFError) as error:
        form = "compressed JSON Lines" if is_compressed else "JSON Lines"
        raise DatasetError(f"{path}: not {form} ({error}).") from error


def _parse_row(path: Path, line: str) -> Row:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise DatasetError(f"{path}: every row must be a JSON object.")
    return row


def read_rows(path: Path) -> list[Row]:
    """Read every row, as `each_row` yields them."""
    return list(each_row(path))


def sha256_of(path: Path) -> str:
    """Return the hash of a file's bytes, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_texts(folder: Path) -> str:
    """Return one hash of all text files of a folder, in the order of their names; hexadecimal."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.txt")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def clean_text(text: str) -> str:
    """Remove a transcript's marks and the spaces that tokenising left before punctuation."""
    spaced = " ".join(_NOISE.sub(" ", text).split())
    return _SPACE_BEFORE.sub(r"\1", spaced).replace(" n't", "n't")


def shortened(text: str, words: int) -> str:
    """Keep the first words."""
    return " ".join(text.split()[:words])


CONVERSATIONS = Path(__file__).parent / "conversations"
CATEGORIES = ("single", "multi", "temporal", "inference", "update")
EXCHANGES = Path(__file__).parent / "exchanges"
KINDS = ("friends", "texting", "assistant", "meeting", "notes")

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
    return [read_conversation(path) for path in _text_files(folder, "conversation")]


def _text_files(folder: Path, content: str) -> list[Path]:
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        raise DatasetError(f"{folder}: holds no {content}. Give a folder of *.txt files.")
    return paths


def read_conversation(path: Path) -> Row:
    """Read one file.

    A file holds one conversation of two people over weeks, and after it its questions:

        kind: friends
        ## 1 | 2022-11-03 19:40
        1.1 Ilse: I finally signed the lease, moving my looms over on Saturday.
        1.2 Ruben: Congrats! Which looms?
        ? temporal | 1.1 | When did Ilse move her looms? | Saturday 5 November 2022

    `## session | time`, `session.turn speaker: text`, `? category | turns that answer | question |
    answer`.

    Raises:
        DatasetError: A line cannot be read, or names what is not there.
    """
    reader = _Reader(path)
    for number, line in _numbered_lines(path):
        reader.read(line, f"{path}, line {number}")
    return reader.row()


def _numbered_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines that are not empty, without the spaces around them."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: cannot be read as UTF-8 ({error}).") from error
    return [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._kind = ""
        self._sessions: list[datetime] = []
        self._turns: list[Row] = []
        self._places: dict[str, int] = {}
        self._questions: list[Row] = []

    def read(self, line: str, place: str) -> None:
        if kind := _KIND.fullmatch(line):
            self._kind = _one_of(kind[1], KINDS, place)
        elif session := _SESSION.fullmatch(line):
            self._add_session(session, place)
        elif turn := _TURN.fullmatch(line):
            self._add_turn(turn, place)
        elif question := _QUESTION.fullmatch(line):
            self._add_question(question, place)
        else:
            raise DatasetError(f"{place}: {line[:60]!r} must be a line of a conversation.")

    def row(self) -> Row:
        if not (self._kind and self._questions):
            raise DatasetError(
                f"{self._path}: must have a kind and a question. Give the whole file."
            )
        return {
            "id": self._path.stem,
            "kind": self._kind,
            "turns": self._turns,
            "questions": self._questions,
        }

    def _add_session(self, found: re.Match[str], place: str) -> None:
        try:
            at = datetime.strptime(found[2], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        except ValueError as error:
            raise DatasetError(f"{place}: {found[2]} must be a time.") from error
        follows = not self._sessions or at > self._sessions[-1]
        if int(found[1]) != len(self._sessions) + 1 or not follows:
            raise DatasetError(f"{place}: sessions count from 1 and follow in time.")
        self._sessions.append(at)

    def _add_turn(self, found: re.Match[str], place: str) -> None:
        session = len(self._sessions)
        if found[1].split(".")[0] != str(session) or found[1] in self._places:
            raise DatasetError(f"{place}: turn {found[1]} is not of this session.")
        self._places[found[1]] = len(self._turns)
        self._turns.append(
            {
                "session": session - 1,
                "at": self._sessions[-1].isoformat(),
                "speaker": found[2],
                "text": found[3],
            }
        )

    def _add_question(self, found: re.Match[str], place: str) -> None:
        answering = found[2].split()
        missing = [name for name in answering if name not in self._places]
        if missing or not answering:
            named = ", ".join(missing) or "is named"
            raise DatasetError(f"{place}: no turn {named}.")
        self._questions.append(
            {
                "category": _one_of(found[1], CATEGORIES, place),
                "turns": sorted({self._places[name] for name in answering}),
                "query": found[3].strip(),
                "answer": found[4].strip(),
            }
        )


def _one_of(value: str, known: Sequence[str], place: str) -> str:
    if value not in known:
        raise DatasetError(f"{place}: {value!r} must be one of {', '.join(known)}.")
    return value


DOCUMENTS = Path(__file__).parent / "documents"

_SUBJECT = re.compile(r"subject: (.+)")
_TITLE = re.compile(r"## (.+)")
_SEARCH = re.compile(r"\? (.+)")
_MARKS = ("#", "?", "subject:")


def read_documents(folder: Path = DOCUMENTS) -> list[Row]:
    """Read every file of a folder, in the order of their names.

    Returns:
        For each file `id`, `subject` and `documents` (`title`, `text`, `searches`).

    Raises:
        DatasetError: There is no file, or one cannot be read.
    """
    return [read_document_file(path) for path in _text_files(folder, "documents")]


def read_document_file(path: Path) -> Row:
    """Read one file.

    A file holds documents about one subject, each with the searches that it alone answers:

        subject: iron in macrophages
        ## Ferroportin falls in alveolar macrophages after smoke
        Background: whether smoke changes ...
        ? tobacco raises iron export from lung phagocytes
        ? Which cells lost their iron exporter after smoking?

    Raises:
        DatasetError: A line is out of place, or a document has no text or no search.
    """
    (_, first), *lines = _numbered_lines(path) or [(1, "")]
    subject = _SUBJECT.fullmatch(first)
    if subject is None:
        raise DatasetError(f"{path}, line 1: must be the subject. Begin with `subject: ...`.")
    documents: list[dict[str, Any]] = []
    for number, line in lines:
        _read(line, documents, place=f"{path}, line {number}")
    for document in documents:
        if not (document["text"] and document["searches"]):
            raise DatasetError(
                f"{path}: {document['title']!r} must have text and a search. "
                "Give it text, then lines that begin with `? `."
            )
    if not documents:
        raise DatasetError(f"{path}: holds no document. Begin each with `## its title`.")
    return {"id": path.stem, "subject": subject[1], "documents": documents}


def _read(line: str, documents: list[dict[str, Any]], *, place: str) -> None:
    if title := _TITLE.fullmatch(line):
        documents.append({"title": title[1], "text": "", "searches": []})
    elif not documents:
        raise DatasetError(
            f"{place}: {line[:60]!r} stands before the first title. Begin with `## its title`."
        )
    elif search := _SEARCH.fullmatch(line):
        documents[-1]["searches"].append(search[1])
    elif documents[-1]["searches"] or line.startswith(_MARKS):
        raise DatasetError(
            f"{place}: {line[:60]!r} must be a line of a document. "
            "Its text comes first, then `? a search`; `## a title` begins the next."
        )
    else:
        documents[-1]["text"] = f"{documents[-1]['text']} {line}".strip()


# First names for the speakers of training conversations; none is a speaker of a benchmark.

FIRST_NAMES = tuple(WORDS["first_names"].split())


def two_names(random: Random) -> tuple[str, str]:
    """Draw two different names."""
    first, second = random.sample(FIRST_NAMES, 2)
    return first, second


# Turns of training conversations as the passages that a search sees: `speaker: text`.

_GREETED_SHARE = 0.2
_JOINED_SHARE = 0.35


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: who says what."""

    speaker: str
    text: str


def turn_passages(
    turns: Sequence[Turn], addressee: Mapping[str, str], random: Random
) -> tuple[list[str], list[int]]:
    """Write turns as passages, some of them longer and some with the other's name.

    Short chats become more like written ones: a share of the turns takes in what its speaker says
    next, and a share opens with the name of whom it is said to, so that a name in a question means
    who speaks and not who is greeted.

    Args:
        turns: The conversation.
        addressee: Whom each speaker talks to.
        random: Decides which turns change.

    Returns:
        The passages in order, and for every turn the position of the passage that holds it.
    """
    rows: list[int] = [-1] * len(turns)
    texts: list[str] = []
    for place, turn in enumerate(turns):
        if rows[place] >= 0:
            continue
        rows[place] = len(texts)
        text = turn.text
        later = place + 2
        joins = later < len(turns) and turns[later].speaker == turn.speaker
        if joins and random.random() < _JOINED_SHARE:
            rows[later] = len(texts)
            text = f"{text} {turns[later].text}"
        if random.random() < _GREETED_SHARE:
            greeting = str(random.choice(WORDS["greetings"]))
            text = greeting.format(addressee[turn.speaker], text)
        texts.append(f"{turn.speaker}: {text}")
    return texts, rows


# Long messages: what one speaker says in several turns, put together into one.
#
# Assistants and mails say in one message what a chat says in many turns; a model that has seen
# short turns only ranks such messages badly.

FEWEST_TURNS, MOST_TURNS = 2, 7
_LONGEST_NAME = 40
_LONG_WORDS = 60


def is_long(group: QuestionGroup) -> bool:
    """Tell whether the passages are long already: together their answers would be cut off."""
    words = sum(len(passage.split()) for passage in group.passages)
    return words >= _LONG_WORDS * len(group.passages)


def with_long_messages(group: QuestionGroup, random: Random) -> QuestionGroup:
    """Put runs of a speaker's passages together; questions keep all passages that answer them.

    Args:
        group: Its passages in the order in which they were said, `speaker: text` or `text`.
        random: Decides how many passages each message takes.
    """
    messages: list[tuple[str, list[str]]] = []  # of whom, and what they say
    unfinished: dict[str, tuple[int, int]] = {}  # the place of a speaker's message, and its size
    places: list[int] = []
    for passage in group.passages:
        speaker, colon, text = passage.partition(": ")
        if not colon or len(speaker) > _LONGEST_NAME or "." in speaker:
            speaker, text = "", passage
        if speaker not in unfinished:
            unfinished[speaker] = len(messages), random.randint(FEWEST_TURNS, MOST_TURNS)
            messages.append((speaker, []))
        place, size = unfinished[speaker]
        messages[place][1].append(text)
        places.append(place)
        if len(messages[place][1]) == size:
            del unfinished[speaker]
    questions = (
        Question(asked.text, tuple(sorted({places[row] for row in asked.positives})))
        for asked in group.questions
    )
    passages = ((f"{who}: " if who else "") + " ".join(said) for who, said in messages)
    return QuestionGroup(group.source, tuple(passages), tuple(questions))


# Neutral texts for the ranges of a quantised model, read from JSON Lines files.

TEXTS_PER_FILE = 200
_TEXT_FIELDS = ("text", "query", "passage", "sentence")


def read_calibration(
    paths: Sequence[Path], *, texts_per_file: int = TEXTS_PER_FILE
) -> CalibrationSource:
    """Take evenly spaced texts from `.jsonl` or `.jsonl.gz` files, or a folder of conversations.

    A row gives its turns as `speaker: text`, or its fields `text`, `query`, `passage`, `sentence`.

    Raises:
        DatasetError: A file is missing, malformed or without texts.
    """
    texts: list[str] = []
    files: dict[str, str] = {}
    for path in paths:
        rows = read_conversations(path) if path.is_dir() else each_row(path)
        try:
            found = [text for row in rows for text in _row_texts(row)]
        except (KeyError, TypeError) as error:
            raise DatasetError(f"{path}: not JSON Lines with texts ({error}).") from error
        if not found:
            raise DatasetError(f"{path}: no texts found. Rows need turns, text, query or passage.")
        files[path.name] = sha256_of_texts(path) if path.is_dir() else sha256_of(path)
        step = max(1, len(found) // texts_per_file)
        texts.extend(found[::step][:texts_per_file])
    return CalibrationSource(tuple(texts), files)


def _row_texts(row: Mapping[str, Any]) -> Iterator[str]:
    for turn in row.get("turns", ()):
        yield f"{turn['speaker']}: {turn['text']}"
    for name in _TEXT_FIELDS:
        if row.get(name):
            yield str(row[name])
