"""Imports of the exports of ChatGPT and Claude: conversations, and what else they hold."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

from ekphory.documents.blocks import Problem, SkippedPart, Unit, format_place
from ekphory.documents.passages import Passage, passages, read_document
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.text import LARGEST_TEXT, decode, parse_paragraphs
from ekphory.documents.tree import (
    DOCUMENT_POOL,
    UNREAD,
    Reader,
    describe_other_kind,
    find_reader,
)
from ekphory.importers.documents import describe_problem
from ekphory.importers.source import (
    CHANGED_AT,
    CONVERSATIONS,
    ImportedRecord,
    Readable,
    Unreadable,
    WholeText,
    list_members,
    open_member,
    read_list,
    read_moment,
    read_text,
    stream_elements,
    stream_member,
)
from ekphory.types import DEFAULT_POOL, Scalar


@dataclass(frozen=True, slots=True)
class AttachedText:
    """A text of its own in an export: an attached file, a canvas, a memory.

    Attributes:
        id: What names it in the export.
        name: What it is called.
        text: Its text.
        source: The product.
        at: When it was written; None where the export does not say.
        changed: When it was changed last; None where the export does not say.
        file: The id of the file in the export that holds the text, where another one does.
        pool: Where it goes.
        metadata: Further facts.
        lasting: Whether its id stays when its words change; else the id is made of them.
        group, others: As in `WholeText`.
    """

    id: str
    name: str
    text: str
    source: str
    at: datetime | None = None
    changed: datetime | None = None
    file: str = ""
    pool: str = DOCUMENT_POOL
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    lasting: bool = True
    group: str = ""
    others: frozenset[str] = frozenset()

    def records(self) -> Iterator[ImportedRecord]:
        """Cut the text into memories; an id stays while the words and their place stay."""
        whole = self.text.replace("\r\n", "\n").replace("\r", "\n")
        found = passages(parse_paragraphs(whole))
        yield from self.make_records((one for one in found if isinstance(one, Passage)), "line")

    def make_records(self, found: Iterable[Passage], unit: Unit) -> Iterator[ImportedRecord]:
        """Make memories of passages, whose places are counted in a unit."""
        whole_text = WholeText(self.id, self.group, self.others) if self.lasting else None
        for number, passage in enumerate(found):
            digest = _hash(f"{number}\0{passage.text}")
            lines = format_place(passage.first, passage.last, unit)
            fields: dict[str, object] = {
                "id": f"{self.id}/{digest}",
                "text": passage.text,
                "session": self.id,
                "sequence": number,
                "path": self.name,
                "heading": " > ".join(passage.section.headings) or None,
                "lines": lines,
                "pool": self.pool,
                "type": "semantic",
                "source": self.source,
                "metadata": {**self.metadata, **note_change(self.at, self.changed)},
            }
            fields |= {} if self.at is None else {"at": self.at}
            yield ImportedRecord(fields, f"{self.id} ({self.name}, {lines})", whole_text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def note_change(at: datetime | None, changed: datetime | None) -> dict[str, Scalar]:
    """Return the metadata that tells when something was changed after it was written."""
    return {} if changed is None or changed == at else {CHANGED_AT: changed.isoformat()}


_MEMORY_LINE = re.compile(r"[ \t]*\d+\.\s*(?:\[(\d{4}-\d\d-\d\d)\][.:]?\s*)?(\S.*)")


def part_memories(
    text: str, source: str, owner: str, *, longest: int = 1
) -> Iterator[AttachedText]:
    """Part a list of memories, a numbered line each, perhaps dated; another text stays whole.

    Args:
        text: The memories.
        source: The product.
        owner: What they are called.
        longest: Lines without a number, up to which such a text is one memory that nothing but its
            words names; a longer one is named by `owner`, and a newer one takes its place.
    """
    whole = text.strip()
    lines = [_MEMORY_LINE.fullmatch(line) for line in whole.split("\n") if line.strip()]
    if len(lines) > longest and not all(lines):
        yield AttachedText(owner, "memories", text, source, pool=DEFAULT_POOL)
        return
    for found in lines:
        date, words = found.groups() if found else (None, whole)
        # Named by its words: it stands in many conversations, at other places of the list.
        at, id_ = read_moment(date), f"{owner}/{_hash(words)}"
        yield AttachedText(id_, "memories", words, source, at, pool=DEFAULT_POOL, lasting=False)


def read_files(path: Path, source: str, attached: Mapping[str, AttachedText]) -> Iterator[Readable]:
    """Read the files of an export that hold no conversations; what is not read is reported.

    Args:
        path: The archive, or the folder that it was unpacked into; a file alone has no others.
        source: The product.
        attached: What the conversations say of attached files, by their ids.
    """
    missing = dict(attached)
    members = list(list_members(path))
    beside = next(filter(CONVERSATIONS.fullmatch, members), "")
    beside = beside[: beside.rfind("/") + 1]
    for member in members:
        # Another program's `users.json` may lie deeper in the same folder.
        name = member.removeprefix(beside)
        kind = next((read for pattern, read in _KINDS if pattern.fullmatch(name)), None)
        held = next((one for one in missing if _is_named(member, one)), None)
        if CONVERSATIONS.fullmatch(member):
            continue
        if held is not None:
            yield from _read_attached(path, member, missing.pop(held))
        elif kind is None:
            yield SkippedPart(_describe_file(member))
        else:
            yield from _read_elements(path, member, source, kind)
    for _ in missing:
        yield SkippedPart("attached file that is not in the export")


def _is_named(member: str, file_id: str) -> bool:
    """Return whether a file's name is an id, or begins with it before `-`, `_` or `.`."""
    name = PurePosixPath(member).name
    return name.startswith(file_id) and not name[len(file_id) :][:1].isalnum()


def _describe_file(member: str) -> str:
    name = PurePosixPath(member)
    is_told = name.suffix.lower() in (".json", ".html")
    return name.name if is_told else describe_other_kind(name)


_TEXT_SUFFIXES = frozenset(
    ".txt .md .markdown .rst .csv .tsv .json .jsonl .yaml .yml .toml .xml .css .tex "
    ".log .sql .sh .py .js .ts .tsx .java .go .rs .c .h .cpp .cs .rb .php .swift .kt .r".split()
)
_DOCUMENT_KINDS = ("PDF", "Word", "HTML")


def _read_attached(path: Path, member: str, attached: AttachedText) -> Iterator[Readable]:
    """Read an attached file: a document by its reader, another text by its paragraphs."""
    reader = find_reader(Path(attached.name))
    is_document = reader is not None and reader.name in _DOCUMENT_KINDS
    if not is_document and PurePosixPath(attached.name).suffix.lower() not in _TEXT_SUFFIXES:
        yield SkippedPart(f"attached {_describe_file(attached.name)}")
        return
    if reader is not None and is_document and reader.missing_extra():
        yield SkippedPart(f"attached {UNREAD[reader].reason}")
        return
    with open_member(path, member) as stream:
        data = stream.read(LARGEST_TEXT + 1)
    place = f"{path.name}/{member}"
    if len(data) > LARGEST_TEXT:
        yield Unreadable(place, "file", "more than 64 MB are not read. Split it.")
    elif reader is not None and is_document:
        yield from _read_document(place, data, reader, attached)
    elif isinstance(text := decode(data, None), str):
        yield from replace(attached, text=text).records()
    else:
        yield Unreadable(place, "file", text.message)


def _read_document(
    place: str, data: bytes, reader: Reader, attached: AttachedText
) -> Iterator[Readable]:
    """Read a document by its reader, which wants a file; scanned pages are left out."""
    with TemporaryDirectory(prefix="ekphory-") as folder:
        file = Path(folder, f"attached{reader.suffixes[0]}")
        file.write_bytes(data)
        found = list(read_document(file, reader, ReadingSettings()))
    yield from (one for one in found if isinstance(one, SkippedPart))
    problems = [one for one in found if isinstance(one, Problem)]
    yield from (describe_problem(place, one, reader.unit) for one in problems)
    # What was read in part takes the place of nothing.
    whole = replace(attached, lasting=attached.lasting and not problems)
    yield from whole.make_records((one for one in found if isinstance(one, Passage)), reader.unit)


Element = Mapping[str, object]
ReadElement = Callable[[Element, str], Iterator[AttachedText | SkippedPart]]


def _read_elements(path: Path, member: str, source: str, read: ReadElement) -> Iterator[Readable]:
    for found in stream_member(path, member):
        if isinstance(found, Unreadable):
            yield found
        elif isinstance(found[1], dict):
            for text in read(found[1], source):
                yield from (text,) if isinstance(text, SkippedPart) else text.records()
        else:
            yield Unreadable(found[0], "element", "must be an object.", str(found[1])[:500])


def _read_project(project: Element, source: str) -> Iterator[AttachedText | SkippedPart]:
    """Read a project of Claude: its description, its instructions, its documents."""
    identity, title = read_text(project.get("uuid")) or "project", read_text(project.get("name"))
    named: dict[str, Scalar] = {"title": title} if title else {}
    at, changed = _moment(project), read_moment(project.get("updated_at"))
    for part in ("description", "prompt_template"):
        if text := read_text(project.get(part)):
            id_ = f"{identity}/{part}"
            yield AttachedText(id_, part, text, source, at, changed, metadata=named)
    held = [each if isinstance(each, dict) else {} for each in read_list(project.get("docs"))]
    names = [read_text(document.get("filename")) or "document" for document in held]
    uuids = [read_text(document.get("uuid")) or number for number, document in enumerate(held)]
    ids = [f"{identity}/{uuid}" for uuid in uuids]
    for document, name, id_ in zip(held, names, ids, strict=True):
        if text := read_text(document.get("content")):
            written, changed = _moment(document) or at, read_moment(document.get("updated_at"))
            read = AttachedText(id_, name, text, source, written, changed, metadata=named)
            # A document that was uploaded anew has another id; two of one name are two.
            group = identity if names.count(name) == 1 else ""
            yield replace(read, group=group, others=frozenset(ids))
        else:
            yield SkippedPart("document without text")


def _read_memories(element: Element, source: str) -> Iterator[AttachedText | SkippedPart]:
    """Read the memories of an account: one text, a text for each project, or a list of them."""
    projects = element.get("project_memories")
    texts = {"": _first_text(element, _SUMMARY, "content", "memory", "text")}
    texts |= projects if isinstance(projects, dict) else {}
    told = {name: text for name, text in texts.items() if read_text(text)}
    for project, text in told.items():
        place = f"{source}/memories" + (f"/{project}" if project else "")
        # Elsewhere a list has many elements of one memory each.
        is_whole = project or text == read_text(element.get(_SUMMARY))
        for memory in part_memories(text, source, place, longest=0 if is_whole else 1):
            changed = read_moment(element.get("updated_at"))
            yield replace(memory, at=memory.at or _moment(element), changed=changed)
    if not told:
        yield SkippedPart("memory without text")


_SUMMARY = "conversations_memory"
_ABOUT = ("bio", "about_user_message", "about_model_message", "custom_instructions")


def _read_user(element: Element, source: str) -> Iterator[AttachedText | SkippedPart]:
    """Read what users wrote about themselves, not their address or telephone."""
    told = {name: text for name in _ABOUT if (text := read_text(element.get(name)))}
    for name, text in told.items():
        yield AttachedText(f"{source}/{name}", name, text, source, pool=DEFAULT_POOL)
    if not told:
        yield SkippedPart("account without a bio")


_KINDS = (
    (re.compile(r"projects(?:/[^/]+)?\.json"), _read_project),
    (re.compile(r"memor(?:y|ies)\.json"), _read_memories),
    (re.compile(r"users?\.json"), _read_user),
)
"""How the other files are called, and what reads an element of one."""


def _first_text(element: Element, *names: str) -> str:
    return next((text for name in names if (text := read_text(element.get(name)))), "")


def _moment(element: Element) -> datetime | None:
    return read_moment(_first_text(element, "created_at", "updated_at"))


Role = Literal["user", "assistant"]
_OTHER: dict[Role, Role] = {"user": "assistant", "assistant": "user"}


@dataclass(frozen=True, slots=True)
class ExportedMessage:
    """One visible message of an export.

    Attributes:
        id: The product's id, unique within the conversation.
        role: Who wrote it.
        text: What was written, never blank.
        at: When, in UTC; None where the export does not say.
        changed: When it was edited last; None where the export does not say.
        metadata: Further facts, for example names of attached files.
    """

    id: str
    role: Role
    text: str
    at: datetime | None
    changed: datetime | None = None
    metadata: Mapping[str, Scalar] = field(default_factory=dict)


Said: TypeAlias = ExportedMessage | AttachedText | Unreadable | SkippedPart


@dataclass(frozen=True, slots=True)
class _Product:
    """How a product's export tells its conversations.

    Attributes:
        source: What the records name as their source.
        held: Name and type of the field with the messages.
        ids, title, moments: Names of the fields with the id, the title and the beginning.
        messages: Reads the messages, given the place of the conversation in a report.
    """

    source: str
    held: tuple[str, type]
    ids: tuple[str, ...]
    title: str
    moments: tuple[str, ...]
    messages: Callable[[Mapping[str, Any], str], Iterator[Said]]


def _read_export(path: Path, product: _Product) -> Iterator[Readable]:
    attached: dict[str, AttachedText] = {}
    told: dict[str, str] = {}
    for element in stream_elements(path, "conversation"):
        if isinstance(element, Unreadable):
            yield element
            continue
        for found in _read_conversation(*element, product):
            if not isinstance(found, AttachedText):
                yield found
            elif found.file:
                attached[found.file] = found
            elif told.get(found.id) != (said := _hash(found.text)):
                # What stands in every conversation is given again where it says something else.
                told[found.id] = said
                yield from found.records()
    yield from read_files(path, product.source, attached)


def _read_conversation(
    place: str, element: object, product: _Product
) -> Iterator[Readable | AttachedText]:
    """Turn the messages of one conversation, in order, into records.

    A message without a moment takes that of the message before it, or else the conversation's.
    """
    field_name, kind = product.held
    if not isinstance(element, dict) or not isinstance(element.get(field_name), kind):
        yield Unreadable(place, field_name, f"a conversation must hold {field_name}.")
        return
    named = (element.get(name) for name in product.ids)
    identity = next((found for found in named if isinstance(found, str) and found), None)
    if identity is None:
        yield Unreadable(place, product.ids[0], f"a conversation must have {product.ids[0]}.")
        return
    place = f"{place} ({identity})"
    title = read_text(element.get(product.title))
    titled: dict[str, Scalar] = {"title": title} if title else {}
    moments = (read_moment(element.get(name)) for name in product.moments)
    latest = next(filter(None, moments), None)
    sequence = 0
    for message in product.messages(element, place):
        if isinstance(message, Unreadable | SkippedPart):
            yield message
            continue
        if isinstance(message, AttachedText):
            # What is said of the whole account does not get the title of a conversation.
            about = titled if message.pool == DOCUMENT_POOL else {}
            yield replace(message, at=message.at or latest, metadata=about)
            continue
        latest = message.at or latest
        where = f"{place}, message {message.id}"
        if latest is None:
            reason = "neither the message nor its conversation says when it was. Add create_time."
            yield Unreadable(where, "at", reason, message.text[:500])
        else:
            changed = note_change(message.at, message.changed)
            fields: dict[str, object] = {
                "id": f"{identity}/{message.id}",
                "text": message.text,
                "at": latest,
                "producer": message.role,
                "produced_for": _OTHER[message.role],
                "role": message.role,
                "session": identity,
                "sequence": sequence,
                "source": product.source,
                "metadata": {**titled, **message.metadata, **changed},
            }
            yield ImportedRecord(fields, where)
        sequence += 1


def join_file_names(files: object, key: str) -> str:
    """Join the names of attached files, kept under `key`, into one text."""
    names = [file.get(key) for file in read_list(files) if isinstance(file, dict)]
    return ", ".join(name for name in names if isinstance(name, str) and name)


_ROLES: dict[object, Role] = {"user": "user", "assistant": "assistant"}
_VISIBLE_CONTENT = ("text", "multimodal_text", "code")


def read_chatgpt(path: Path) -> Iterator[Readable]:
    """Read the visible messages of a ChatGPT export, one conversation at a time, then its files.

    A conversation is a tree of messages; what is read is the branch that the product shows, from
    `current_node` up to the root; messages of other branches are counted. Messages of the system
    and of tools, calls to tools, reasoning, hidden and empty messages are left out. Pictures and
    files are named in the metadata. Canvases, memories, instructions of the user, and attached
    files with text, PDF, Word and HTML among them, are read as texts of their own.

    Args:
        path: `conversations.json`, the export's zip archive, or the folder it was unpacked into.

    Returns:
        One record per message, one `Unreadable` per broken message or conversation, and one
        `SkippedPart` per piece that is passed over.
    """
    return _read_export(path, _CHATGPT)


def _read_chatgpt_messages(conversation: Mapping[str, Any], place: str) -> Iterator[Said]:
    mapping = conversation["mapping"]
    branch = _find_shown_branch(mapping, conversation.get("current_node"))
    yield from _pass_over_unshown(mapping, {node_id for node_id, _ in branch})
    canvases: list[AttachedText] = []
    for node_id, message in branch:
        if message is None:
            continue
        if not isinstance(message, dict) or not isinstance(message.get("content"), dict):
            reason = "the message has no content that can be read."
            yield Unreadable(f"{place}, message {node_id}", "message", reason, str(message)[:500])
            continue
        recipient = str(message.get("recipient"))
        if recipient.startswith(_CANVAS):
            if hindrance := _follow_canvas(canvases, message, node_id):
                yield SkippedPart(hindrance)
            continue
        texts = list(_read_context(message, recipient))
        yield from texts
        text = _read_cards(_read_content(message["content"]))
        absence = _explain_absence(message, text)
        if absence is None:
            yield _read_message(message, text, node_id)
        elif not texts:
            yield SkippedPart(absence)
        yield from _list_attached(message)
    yield from canvases


_CANVAS = "canmore."
_WHOLE = (".*", "^.*$", "(.*)", "[\\s\\S]*")


def _follow_canvas(
    canvases: list[AttachedText], message: Mapping[str, Any], node_id: str
) -> str | None:
    """Take a new canvas, or change the latest one as the assistant did; return what is left out."""
    try:
        said = json.loads(_read_content(message["content"]))
        if message["recipient"] == "canmore.create_textdoc":
            name, text = str(said.get("name") or "canvas"), said["content"]
            at = read_moment(message.get("create_time"))
            canvases.append(AttachedText(f"canvas/{node_id}", name, text.strip(), "chatgpt", at))
        elif message["recipient"] == "canmore.update_textdoc":
            for change in said["updates"]:
                changed = _change_canvas(canvases[-1], change)
                canvases[-1] = replace(changed, changed=read_moment(message.get("create_time")))
        else:
            return "comment on a canvas"
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return "change of a canvas that cannot be followed"
    return None


def _change_canvas(canvas: AttachedText, change: Mapping[str, Any]) -> AttachedText:
    """Replace all of a canvas, or words of it.

    Raises:
        ValueError: The words are not there, or are given as a pattern, which might never finish.
    """
    pattern, new = change["pattern"], change["replacement"]
    if pattern in _WHOLE:
        return replace(canvas, text=new.strip())
    words = re.sub(r"\\([^\w])", r"\1", pattern)
    if not words or words not in canvas.text:
        raise ValueError(words)
    count = -1 if change.get("multiple") else 1
    return replace(canvas, text=canvas.text.replace(words, new, count))


def _read_context(message: Mapping[str, Any], recipient: str) -> Iterator[AttachedText]:
    """Read the memories and instructions that a conversation was given, or that it made."""
    content = message["content"]
    memories = _read_content(content) if recipient == "bio" else content.get("model_set_context")
    if isinstance(memories, str) and memories.strip():
        made = read_moment(message.get("create_time")) if recipient == "bio" else None
        for memory in part_memories(memories, "chatgpt", "chatgpt/memories"):
            yield replace(memory, at=memory.at or made)
    for name in ("user_profile", "user_instructions"):
        if text := read_text(content.get(name)):
            yield AttachedText(f"chatgpt/{name}", name, text, "chatgpt", pool=DEFAULT_POOL)


def _list_attached(message: Mapping[str, Any]) -> Iterator[AttachedText | SkippedPart]:
    at = read_moment(message.get("create_time"))
    for file in _find_attachments(message):
        named = file if isinstance(file, dict) else {}
        identity, name = read_text(named.get("id")), read_text(named.get("name"))
        if identity:
            id_ = f"chatgpt/{identity}"
            yield AttachedText(id_, name or identity, "", "chatgpt", at, file=identity)
        else:
            yield SkippedPart("attached file without an id")


_CHATGPT = _Product(
    "chatgpt",
    held=("mapping", dict),
    ids=("conversation_id", "id"),
    title="title",
    moments=("create_time", "update_time"),
    messages=_read_chatgpt_messages,
)


def _find_shown_branch(mapping: Mapping[str, object], current: object) -> list[tuple[str, object]]:
    """Follow the parents from the current node to the root; give (node id, message) root first."""
    is_known = isinstance(current, str) and current in mapping
    node_id = current if is_known else _find_latest_leaf(mapping)
    branch: list[tuple[str, object]] = []
    seen: set[str] = set()
    while isinstance(node_id, str) and node_id in mapping and node_id not in seen:
        seen.add(node_id)
        node = mapping[node_id]
        if not isinstance(node, dict):
            branch.append((node_id, "not an object"))
            break
        branch.append((node_id, node.get("message")))
        node_id = node.get("parent")
    return branch[::-1]


def _pass_over_unshown(mapping: Mapping[str, object], shown: set[str]) -> Iterator[SkippedPart]:
    """Name each message that stands on another branch: a question or an answer of before."""
    for node_id in mapping.keys() - shown:
        node = mapping[node_id]
        message = node.get("message") if isinstance(node, dict) else None
        if not isinstance(message, dict) or not isinstance(message.get("content"), dict):
            continue
        if not _explain_absence(message, _read_content(message["content"])):
            yield SkippedPart("message of a branch that is not shown")


def _find_latest_leaf(mapping: Mapping[str, object]) -> str | None:
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}

    def read_seconds(name: str) -> float:
        message = nodes[name].get("message")
        moment = read_moment(message.get("create_time")) if isinstance(message, dict) else None
        return moment.timestamp() if moment else 0.0

    leaves = (name for name, node in nodes.items() if not node.get("children"))
    return max(leaves, key=read_seconds, default=None)


def _read_message(message: Mapping[str, Any], text: str, node_id: str) -> ExportedMessage:
    identity = message.get("id")
    return ExportedMessage(
        id=identity if isinstance(identity, str) and identity else node_id,
        role=_ROLES[read_text(message["author"]["role"])],
        text=text,
        at=read_moment(message.get("create_time")),
        changed=read_moment(message.get("update_time")),
        metadata=_describe_enclosures(message),
    )


def _explain_absence(message: Mapping[str, Any], text: str) -> str | None:
    """Return why a message is not one that the product shows; None where it is."""
    content, metadata, author = message["content"], message.get("metadata"), message.get("author")
    role = read_text(author.get("role")) if isinstance(author, dict) else ""
    kind = content.get("content_type", "text")
    if role not in _ROLES:
        return f"{role} message" if role else "message without a role"
    if kind not in _VISIBLE_CONTENT:
        return f"{kind} message"
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    if hidden or message.get("weight") == 0:
        return "hidden message"
    if message.get("recipient") not in (None, "all"):
        return "call of a tool"
    return None if text else "message without text"


def _read_content(content: Mapping[str, object]) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        return read_text(content.get("text"))
    # A dictionary holds a picture, a sound or a transcript; only the last two kinds carry words.
    said = (read_text(part.get("text") if isinstance(part, dict) else part) for part in parts)
    return "\n".join(filter(None, said))


_CARD = re.compile("([ \t]?)\ue200(\\w*)\ue202?([^\ue200\ue201]*)\ue201")
_LABELLED = ("url", "link_title")


def _read_cards(text: str) -> str:
    """Return a text with the words of its links and names, and without its citations and cards.

    An export has them between characters that the product does not show.
    """

    def show(found: re.Match[str]) -> str:
        gap, kind, told = found.groups()
        words = told.partition("\ue202")[0] if kind in _LABELLED else ""
        if kind == "entity":
            words = _read_entity(told)
        return f"{gap}{words}" if words else ""

    return _CARD.sub(show, text).strip()


def _read_entity(told: str) -> str:
    """Return the name in `["city", "Oslo", …]`; what is told otherwise is the name."""
    try:
        _, name, *_ = json.loads(told)
    except (ValueError, TypeError, RecursionError):
        return told
    return read_text(name)


def _describe_enclosures(message: Mapping[str, Any]) -> dict[str, Scalar]:
    parts = read_list(message["content"].get("parts"))
    kinds = [part.get("content_type") for part in parts if isinstance(part, dict)]
    names = join_file_names(_find_attachments(message), "name")
    found: dict[str, Scalar] = {
        "images": kinds.count("image_asset_pointer"),
        "attachments": names,
    }
    return {name: value for name, value in found.items() if value}


def _find_attachments(message: Mapping[str, object]) -> list[Any]:
    metadata = message.get("metadata")
    return read_list(metadata.get("attachments")) if isinstance(metadata, dict) else []


_CLAUDE_ROLES: dict[object, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


def read_claude(path: Path) -> Iterator[Readable]:
    """Read the messages of a Claude export, one conversation at a time, then its other files.

    Only the blocks of kind `text` are read: calls to tools, their results and thinking are left
    out, and so are messages without text. Names of attached files go into the metadata. The text
    of attachments, artifacts, memories, and documents of projects are read as texts of their own.

    Args:
        path: `conversations.json`, the export's zip archive, or the folder it was unpacked into.

    Returns:
        As `read_chatgpt`.
    """
    return _read_export(path, _CLAUDE)


def _read_claude_messages(conversation: Mapping[str, Any], place: str) -> Iterator[Said]:
    artifacts: dict[str, AttachedText] = {}
    for position, message in enumerate(conversation["chat_messages"]):
        where = f"{place}, message {position}"
        if not isinstance(message, dict):
            yield Unreadable(where, "message", "must be an object.", str(message)[:500])
        elif read_text(message.get("sender")) not in _CLAUDE_ROLES:
            reason = f"unknown sender {message.get('sender')!r}; expected human or assistant."
            yield Unreadable(where, "sender", reason, str(message.get("text"))[:500])
        else:
            blocks = [each for each in read_list(message.get("content")) if isinstance(each, dict)]
            at = read_moment(message.get("created_at"))
            others = (block for block in blocks if block.get("type") != "text")
            left_out = (_follow_artifact(artifacts, block, at) for block in others)
            yield from (SkippedPart(what) for what in left_out if what)
            said = (read_text(block.get("text")) for block in blocks if block.get("type") == "text")
            text = "\n\n".join(filter(None, said))
            # The flat text also holds stand-ins for tool blocks, so it counts only without blocks.
            if text := text or ("" if message.get("content") else read_text(message.get("text"))):
                yield _read_claude_message(message, text, position)
            else:
                yield SkippedPart("message without text")
            owner = f"{conversation['uuid']}/{message.get('uuid') or position}"
            yield from _read_claude_attachments(message, owner)
    for name, artifact in artifacts.items():
        yield replace(artifact, id=f"{conversation['uuid']}/artifacts/{name}")


def _follow_artifact(
    artifacts: dict[str, AttachedText], block: Mapping[str, Any], at: datetime | None
) -> str | None:
    """Take a new artifact, or change one as the assistant did; return what is left out."""
    if (block.get("type"), block.get("name")) != ("tool_use", "artifacts"):
        return f"{block.get('type')} block"
    try:
        said = block["input"]
        name = str(said["id"])
        held = artifacts.get(name) or AttachedText(name, name, "", "claude", at)
        text: str | None = said.get("content")
        if said["command"] == "update":
            before, words, after = held.text.partition(said["old_str"])
            text = f"{before}{said['new_str']}{after}" if words else None
        title = read_text(said.get("title")) or held.name
    except (ValueError, LookupError, TypeError, AttributeError):
        text = None
    if not isinstance(text, str):
        return "change of an artifact that cannot be followed"
    artifacts[name] = replace(held, name=title, text=text, changed=at)
    return None


def _read_claude_attachments(
    message: Mapping[str, object], owner: str
) -> Iterator[AttachedText | SkippedPart]:
    """Read the text that Claude took from attached files; the files are not in the export."""
    at = read_moment(message.get("created_at"))
    for kind in ("attachments", "files"):
        for number, file in enumerate(read_list(message.get(kind))):
            text = read_text(file.get("extracted_content")) if isinstance(file, dict) else ""
            if text:
                name = read_text(file.get("file_name")) or f"{kind} {number}"
                yield AttachedText(f"{owner}/{kind}/{number}", name, text, "claude", at)
            else:
                yield SkippedPart("attached file without text")


_CLAUDE = _Product(
    "claude",
    held=("chat_messages", list),
    ids=("uuid",),
    title="name",
    moments=("created_at",),
    messages=_read_claude_messages,
)


def _read_claude_message(
    message: Mapping[str, object], text: str, position: int
) -> ExportedMessage:
    identity = message.get("uuid")
    names = [join_file_names(message.get(kind), "file_name") for kind in ("attachments", "files")]
    attached = ", ".join(name for name in names if name)
    return ExportedMessage(
        id=identity if isinstance(identity, str) and identity else str(position),
        role=_CLAUDE_ROLES[read_text(message.get("sender"))],
        text=text,
        at=read_moment(message.get("created_at")),
        changed=read_moment(message.get("updated_at")),
        metadata={"attachments": attached} if attached else {},
    )
