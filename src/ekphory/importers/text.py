"""Imports of plain text, Markdown and JSON Lines."""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from ekphory.documents import notes
from ekphory.documents.blocks import NoteFacts, Section, SkippedPart
from ekphory.importers import source
from ekphory.importers.documents import gather_metadata
from ekphory.importers.source import MAX_UNIT_BYTES

_SET_BY_THE_STORE = ("created_at", "supersedes", "superseded_by")
"""Fields that a listing shows and that the store sets itself when a record is written."""


def read_jsonl(path: Path) -> Iterator[source.Readable]:
    """Read a JSON Lines file whose objects use the field names of `MemoryRecord`.

    A broken line is reported with its number and does not end the import. What the store sets
    itself, such as `created_at`, is passed over, so that a listing can be imported again.

    Args:
        path: The file, UTF-8.

    Yields:
        One record or one `Unreadable` for every line that is not blank.
    """
    for found in source.stream_lines(path):
        yield found if isinstance(found, source.Unreadable) else read_json_line(*found)


def read_json_line(place: str, line: bytes) -> source.ImportedRecord | source.Unreadable:
    """Read a line that holds an object with the field names of `MemoryRecord`."""
    content = line[:500].decode("utf-8", errors="replace").strip()
    parsed = None
    try:
        parsed = json.loads(line.decode("utf-8").strip())
        message = f"a {type(parsed).__name__} in place of an object. Write {{...}} on each line."
    except UnicodeDecodeError as error:
        message = f"byte {error.start + 1} of the line is not UTF-8. Save the file as UTF-8."
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg} (column {error.colno}). Mend this line."
    except (ValueError, RecursionError) as error:
        message = f"not usable JSON: {error}. Mend this line."
    if not isinstance(parsed, dict):
        return source.Unreadable(place, "line", message, content)
    if parsed.get("superseded_by") is not None:
        message = "an earlier version of another memory. Import only the current one."
        return source.Unreadable(place, "superseded_by", message, content)
    kept = {name: value for name, value in parsed.items() if name not in _SET_BY_THE_STORE}
    return source.ImportedRecord(kept, place)


TEXT_SUFFIXES = (".md", ".markdown", ".txt")
_MARKDOWN_SUFFIXES = (".md", ".markdown")
_FENCES = ("```", "~~~")
_HEADING = re.compile(r"(?P<marks>#{1,6}) +(?P<title>.*?)[ #]*")


@dataclass(frozen=True, slots=True)
class _Paragraph:
    text: str
    first_line: int
    last_line: int
    section: Section
    problem: str


def read_text(path: Path) -> Iterator[source.Readable]:
    """Read the paragraphs, parted by blank lines, of a text file or of a folder of them.

    A Markdown heading belongs to the paragraphs below it and is not a memory of its own; a fenced
    code block is never parted; front matter, links and tags become metadata. The moment of a memory
    is the date of its note, else the file's last change. An id is made of the path within the
    folder and the words, so a second import adds only what changed.

    Args:
        path: A UTF-8 file, or a folder whose .txt, .md and .markdown files are read, at any depth.

    Yields:
        One record per paragraph, or one `Unreadable` per paragraph that cannot be used, and what
        was left out.
    """
    for file in list_text_files(path):
        relative = file.relative_to(path).as_posix() if path.is_dir() else file.name
        held = _read_file(file, relative)
        first = next(held, SkippedPart("no text in it"))
        yield from chain((first,), held)


def list_text_files(path: Path) -> list[Path]:
    """List the text files below a folder in the order of their paths, or the one file itself."""
    if not path.is_dir():
        return [path]
    named = (entry for entry in path.rglob("*") if entry.suffix.lower() in TEXT_SUFFIXES)
    shown = (each for each in named if "/." not in f"/{each.relative_to(path).as_posix()}")
    return sorted(entry for entry in shown if entry.is_file())


def _read_file(file: Path, relative: str) -> Iterator[source.Readable]:
    markdown = _is_markdown(file)
    told, first_line = _read_front_matter(file) if markdown else ([], 1)
    yield from (one.locate(relative) for one in told if isinstance(one, SkippedPart))
    facts = next((one for one in told if isinstance(one, NoteFacts)), NoteFacts())
    changed = datetime.fromtimestamp(file.stat().st_mtime, tz=UTC)
    at = notes.find_date(relative, facts.dates) or changed
    repeats: Counter[bytes] = Counter()
    sequence = 0
    for paragraph in _read_paragraphs(file, first_line):
        place = f"{relative}:{paragraph.first_line}"
        if paragraph.problem:
            yield source.Unreadable(place, "paragraph", paragraph.problem, paragraph.text[:500])
            continue
        note = notes.read_marks(paragraph.text) if markdown else notes.NoteText(paragraph.text)
        if not note.text:
            yield SkippedPart("pictures and tags only")
            continue
        section = paragraph.section
        heading = notes.make_heading(section, name=relative, note=facts) if markdown else None
        digest = hashlib.sha256(paragraph.text.encode()).digest()
        yield source.ImportedRecord(
            {
                "id": _make_paragraph_id(relative, digest, repeats[digest]),
                "text": note.text,
                "at": at,
                "session": relative,
                "sequence": sequence,
                "source": "text",
                "path": relative,
                "heading": heading,
                "lines": f"{paragraph.first_line}-{paragraph.last_line}",
                "metadata": gather_metadata(facts, note),
            },
            place,
        )
        repeats[digest] += 1
        sequence += 1


def _is_markdown(file: Path) -> bool:
    return file.suffix.lower() in _MARKDOWN_SUFFIXES


def _read_front_matter(file: Path) -> tuple[list[NoteFacts | SkippedPart], int]:
    """Return what the top of a note says, and the first line below it.

    Without PyYAML, which `[docs]` installs, it stays text.
    """
    if find_spec("yaml") is None:
        return [], 1
    with file.open("rb") as stream:
        opening = stream.read(notes.LONGEST_FRONT_MATTER).removeprefix(codecs.BOM_UTF8)
    text = opening.decode("utf-8", errors="replace").replace("\r\n", "\n")
    told, below = notes.part_front_matter(text)
    return told, len(below) - len(below.lstrip("\n")) + 1 if told else 1


def _make_paragraph_id(relative: str, digest: bytes, repeat: int) -> str:
    identity = b"\0".join((relative.encode(), str(repeat).encode(), digest))
    return f"text:{hashlib.sha256(identity).hexdigest()[:32]}"


def _read_paragraphs(file: Path, first_line: int) -> Iterator[_Paragraph]:
    markdown = _is_markdown(file)
    collector = _Collector()
    for number, line in source.iterate_numbered_lines(file):
        if number < first_line:
            continue
        text = collector.decode(line)
        fence = markdown and text.lstrip().startswith(_FENCES)
        heading = _HEADING.fullmatch(text) if markdown and not collector.fenced else None
        ends = not text.strip() and line is not None and not collector.fenced
        if (ends or heading) and collector.lines:
            yield collector.finish(number - 1)
        if heading:
            collector.begin(title=heading["title"], level=len(heading["marks"]))
        elif not ends:
            collector.take(number, text)
        if fence:
            collector.fenced = not collector.fenced
    if collector.lines:
        yield collector.finish(collector.first_line + len(collector.lines) - 1)


class _Collector:
    """The lines of the paragraph that is being read."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.first_line = 1
        self.section = Section()
        self.fenced = False
        self._size = 0
        self._problem = ""

    def begin(self, *, title: str, level: int) -> None:
        """Let what follows belong to a heading."""
        has_title = bool(title) and (level == 1 or self.section.has_title)
        self.section = Section((title,) if title else (), has_title=has_title)

    def decode(self, line: bytes | None) -> str:
        """Return a line as text, and remember why this paragraph cannot be used."""
        if line is None:
            self._problem = source.describe_excess_length("line")
            return ""
        try:
            return line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            self._problem = "a line of this paragraph is not UTF-8. Save the file as UTF-8."
            return line.decode("utf-8", errors="replace").rstrip("\r\n")

    def take(self, number: int, text: str) -> None:
        """Add a line, but drop its words once the paragraph is longer than may be read."""
        if not self.lines:
            self.first_line = number
        self._size += len(text)
        if self._size > MAX_UNIT_BYTES:
            self._problem = source.describe_excess_length("paragraph")
            text = ""
        self.lines.append(text)

    def finish(self, last_line: int) -> _Paragraph:
        """Return the paragraph and begin the next one."""
        text = "\n".join(self.lines).strip()
        done = _Paragraph(text, self.first_line, last_line, self.section, self._problem)
        self.lines, self._size, self._problem = [], 0, ""
        return done
