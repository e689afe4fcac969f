"""What the exports of chat products hold beside conversations: documents, memories, files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from ekphory.documents.blocks import format_place
from ekphory.documents.passages import Passage, passages
from ekphory.documents.text import LARGEST_TEXT, decode, parse_paragraphs
from ekphory.documents.tree import DOCUMENT_POOL, describe_other_kind
from ekphory.importers.source import (
    CONVERSATIONS,
    ImportedRecord,
    Readable,
    Unreadable,
    list_members,
    open_member,
    read_list,
    read_moment,
    read_text,
    stream_member,
)
from ekphory.types import DEFAULT_POOL, Scalar

LeaveOut = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AttachedText:
    """A text of its own in an export: an attached file, a canvas, a memory.

    Attributes:
        id: What names it in the export.
        name: What it is called.
        text: Its text.
        source: The product.
        at: When it was written; None where the export does not say.
        file: The id of the file in the export that holds the text, where another one does.
        pool: Where it goes.
        metadata: Further facts.
    """

    id: str
    name: str
    text: str
    source: str
    at: datetime | None = None
    file: str = ""
    pool: str = DOCUMENT_POOL
    metadata: Mapping[str, Scalar] = field(default_factory=dict)

    def records(self) -> Iterator[ImportedRecord]:
        """Cut the text into memories; an id stays while the words and their place stay."""
        whole = self.text.replace("\r\n", "\n").replace("\r", "\n")
        for number, passage in enumerate(passages(parse_paragraphs(whole))):
            if not isinstance(passage, Passage):
                continue
            digest = hashlib.sha256(f"{number}\0{passage.text}".encode("utf-8", "surrogatepass"))
            lines = format_place(passage.first, passage.last, "line")
            fields: dict[str, object] = {
                "id": f"{self.id}/{digest.hexdigest()[:16]}",
                "text": passage.text,
                "session": self.id,
                "sequence": number,
                "path": self.name,
                "lines": lines,
                "pool": self.pool,
                "type": "semantic",
                "source": self.source,
                "metadata": dict(self.metadata),
            }
            moment: dict[str, object] = {} if self.at is None else {"at": self.at}
            yield ImportedRecord(fields | moment, f"{self.id} ({self.name}, {lines})")


_MEMORY_LINE = re.compile(r"[ \t]*\d+\.\s*(?:\[(\d{4}-\d\d-\d\d)\][.:]?\s*)?(\S.*)")


def part_memories(text: str, source: str, owner: str) -> Iterator[AttachedText]:
    """Part a list of memories, a numbered line each, perhaps dated; another text stays whole."""
    whole = text.strip()
    lines = [_MEMORY_LINE.fullmatch(line) for line in whole.split("\n")]
    if len(lines) > 1 and not all(lines):
        yield AttachedText(owner, "memories", text, source, pool=DEFAULT_POOL)
        return
    for found in lines:
        date, words = found.groups() if found else (None, whole)
        # Named by its words: it stands in many conversations, at other places of the list.
        name = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        at = read_moment(date)
        yield AttachedText(f"{owner}/{name}", "memories", words, source, at, pool=DEFAULT_POOL)


def read_files(
    path: Path, source: str, attached: Mapping[str, AttachedText], on_left_out: LeaveOut
) -> Iterator[Readable]:
    """Read the files of an export that hold no conversations; what is not read is reported.

    Args:
        path: The archive, or the folder that it was unpacked into; a file alone has no others.
        source: The product.
        attached: What the conversations say of attached files, by their ids.
        on_left_out: Called with the reason where a file, or a part of it, is passed over.
    """
    missing = dict(attached)
    members = list(list_members(path))
    beside = next((_folder(each) for each in members if CONVERSATIONS.fullmatch(each)), "")
    for member in members:
        # Another program's `users.json` may lie deeper in the same folder.
        name = member.removeprefix(beside)
        kind = next((kind for kind in _KINDS if kind.pattern.fullmatch(name)), None)
        held = next((one for one in missing if _is_named(member, one)), None)
        if CONVERSATIONS.fullmatch(member):
            continue
        if held is not None:
            yield from _read_attached(path, member, missing.pop(held), on_left_out)
        elif kind is None:
            on_left_out(_describe_file(member))
        else:
            yield from _read_elements(path, member, source, kind, on_left_out)
    for _ in missing:
        on_left_out("attached file that is not in the export")


def _folder(member: str) -> str:
    return member[: member.rfind("/") + 1]


def _is_named(member: str, file_id: str) -> bool:
    """Return whether a file's name is an id, or begins with it before `-`, `_` or `.`."""
    rest = PurePosixPath(member).name.removeprefix(file_id)
    return rest != PurePosixPath(member).name and not rest[:1].isalnum()


def _describe_file(member: str) -> str:
    name = PurePosixPath(member)
    if name.suffix.lower() in (".json", ".html"):
        return name.name
    return describe_other_kind(name)


_TEXT_SUFFIXES = frozenset(
    ".txt .md .markdown .rst .csv .tsv .json .jsonl .yaml .yml .toml .xml .html .htm .css .tex "
    ".log .sql .sh .py .js .ts .tsx .java .go .rs .c .h .cpp .cs .rb .php .swift .kt .r".split()
)


def _read_attached(
    path: Path, member: str, attached: AttachedText, on_left_out: LeaveOut
) -> Iterator[Readable]:
    if PurePosixPath(attached.name).suffix.lower() not in _TEXT_SUFFIXES:
        on_left_out(f"attached {_describe_file(attached.name)}")
        return
    with open_member(path, member) as stream:
        data = stream.read(LARGEST_TEXT + 1)
    text = decode(data, None) if len(data) <= LARGEST_TEXT else None
    if isinstance(text, str):
        yield from replace(attached, text=text).records()
    else:
        reason = text.message if text else "more than 64 MB are not read. Split it."
        yield Unreadable(f"{path.name}/{member}", "file", reason)


Element = Mapping[str, object]
ReadElement = Callable[[Element, str, LeaveOut], Iterator[AttachedText]]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of file: how it is called, and what reads one of its elements."""

    pattern: re.Pattern[str]
    read: ReadElement


def _read_elements(
    path: Path, member: str, source: str, kind: _Kind, on_left_out: LeaveOut
) -> Iterator[Readable]:
    for found in stream_member(path, member):
        if isinstance(found, Unreadable):
            yield found
        elif isinstance(found[1], dict):
            for text in kind.read(found[1], source, on_left_out):
                yield from text.records()
        else:
            yield Unreadable(found[0], "element", "must be an object.", str(found[1])[:500])


def _read_project(project: Element, source: str, on_left_out: LeaveOut) -> Iterator[AttachedText]:
    """Read a project of Claude: its description, its instructions, its documents."""
    identity, title = read_text(project.get("uuid")) or "project", read_text(project.get("name"))
    named: dict[str, Scalar] = {"title": title} if title else {}
    at = _moment(project)
    for part in ("description", "prompt_template"):
        if text := read_text(project.get(part)):
            yield AttachedText(f"{identity}/{part}", part, text, source, at, metadata=named)
    for number, document in enumerate(read_list(project.get("docs"))):
        text = read_text(document.get("content")) if isinstance(document, dict) else ""
        if not text:
            on_left_out("document without text")
            continue
        name = read_text(document.get("filename")) or "document"
        id_ = f"{identity}/{read_text(document.get('uuid')) or number}"
        yield AttachedText(id_, name, text, source, _moment(document) or at, metadata=named)


def _read_memories(element: Element, source: str, on_left_out: LeaveOut) -> Iterator[AttachedText]:
    """Read the memories of an account: one text, a text for each project, or a list of them."""
    projects = element.get("project_memories")
    texts = {"": _first_text(element, "conversations_memory", "content", "memory", "text")}
    texts |= projects if isinstance(projects, dict) else {}
    found_any = False
    for project, text in texts.items():
        if isinstance(text, str) and text.strip():
            found_any = True
            place = f"{source}/memories" + (f"/{project}" if project else "")
            for memory in part_memories(text, source, place):
                yield replace(memory, at=memory.at or _moment(element))
    if not found_any:
        on_left_out("memory without text")


_ABOUT = ("bio", "about_user_message", "about_model_message", "custom_instructions")


def _read_user(element: Element, source: str, on_left_out: LeaveOut) -> Iterator[AttachedText]:
    """Read what users wrote about themselves, not their address or telephone."""
    found_any = False
    for name in _ABOUT:
        if text := read_text(element.get(name)):
            found_any = True
            yield AttachedText(f"{source}/{name}", name, text, source, pool=DEFAULT_POOL)
    if not found_any:
        on_left_out("account without a bio")


_KINDS = (
    _Kind(re.compile(r"projects(?:/[^/]+)?\.json"), _read_project),
    _Kind(re.compile(r"memor(?:y|ies)\.json"), _read_memories),
    _Kind(re.compile(r"users?\.json"), _read_user),
)


def _first_text(element: Element, *names: str) -> str:
    return next((text for name in names if (text := read_text(element.get(name)))), "")


def _moment(element: Element) -> datetime | None:
    return read_moment(_first_text(element, "created_at", "updated_at"))
