"""What notes of a Markdown vault say beside their text: front matter, links, tags and comments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import PurePosixPath
from urllib.parse import unquote

from ekphory.documents.blocks import NoteFacts, Section, SkippedPart, from_docs_extra
from ekphory.errors import InvalidInput
from ekphory.types import MAX_WHOLE_NUMBER, Scalar, is_storable, to_utc

JOINER = " | "
"""Stands between the entries of a list in the metadata; no link or tag can hold it."""


REFERENCES = "references"
"""Metadata of a passage with links: what they lead to, joined."""


# Front matter

_FRONT_MATTER = re.compile(
    r"---[ \t]*\n(?=[\w\"'-][^\n]*:)(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL
)
LONGEST_FRONT_MATTER = 20_000
_LISTS = {"tags": "tags", "tag": "tags", "aliases": "aliases", "alias": "aliases"}
_DATES = ("date", "created")
_NAMES = _LISTS | {name: name for name in _DATES}
"""What is read in upper case too, and what the metadata call it."""
_NESTED = SkippedPart("front matter within front matter")
_UNREAD_DATE = "{} that cannot be read (write 2025-02-01)"


def part_front_matter(text: str) -> tuple[list[NoteFacts | SkippedPart], str]:
    """Split the settings at the top of a file, which are not Markdown, from the text below.

    Returns:
        What they say, and the text with blank lines in their place, so that lines can be counted.
    """
    found = _FRONT_MATTER.match(text[:LONGEST_FRONT_MATTER])
    if found is None:
        return [], text
    entries = _load(found[1])
    below = "\n" * found[0].count("\n") + text[found.end() :]
    if entries is None:
        return [SkippedPart("front matter that is not YAML", can_be_mended=True)], below
    gathered = _gather_entries(entries)
    marked = {name: read_marks(text) for name, text in gathered.items() if isinstance(text, str)}
    references = tuple(link for found in marked.values() for link in found.references)
    metadata = gathered | {name: found.text for name, found in marked.items() if found.text}
    written = {name: str(metadata[name]) for name in _DATES if name in metadata}
    found_in = {name: read_date(text) or _find_date_in(text) for name, text in written.items()}
    dates = {name: moment for name, moment in found_in.items() if moment}
    unread = [name for name in written if name not in dates]
    told = [SkippedPart(_UNREAD_DATE.format(name), can_be_mended=True) for name in unread]
    told += [_NESTED for value in entries.values() if _is_nested(value)]
    return [NoteFacts(metadata, dates, references), *told], below


def _load(source: str) -> Mapping[object, object] | None:
    with from_docs_extra("Reading front matter"):
        import yaml
    try:
        # As texts: otherwise YAML 1.1 makes 750 of the time 12:30, and fails at odd dates.
        loaded = yaml.load(source, Loader=yaml.BaseLoader)  # noqa: S506  it makes texts alone
    except (yaml.YAMLError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _gather_entries(entries: Mapping[object, object]) -> dict[str, Scalar]:
    """Return what can be stored: scalars, and lists of them as one text; `tag` adds to `tags`."""
    gathered: dict[str, Scalar] = {}
    for key, value in entries.items():
        if not isinstance(key, str) or not key or not is_storable(key):
            continue
        name = _NAMES.get(key.lower(), key)
        found = _read_list(name, value) if name in _LISTS or isinstance(value, list) else value
        if isinstance(found, str) and found.strip() and is_storable(found):
            if name in _LISTS and name in gathered:
                found = join((str(gathered[name]), found))
            gathered[name] = _read_scalar(name, found.strip())
    return gathered


def _is_nested(value: object) -> bool:
    held = value if isinstance(value, list) else (value,)
    return any(isinstance(each, list | dict) for each in held)


def _read_list(name: str, value: object) -> str:
    apart = r"[,\s]+" if name == "tags" else ","
    parts = re.split(apart, value) if isinstance(value, str) else value
    given = parts if isinstance(parts, list) else []
    texts = [part.strip() for part in given if isinstance(part, str)]
    return join(text.removeprefix("#") if name == "tags" else text for text in texts)


def _read_scalar(name: str, text: str) -> Scalar:
    """Return a number or a boolean where it is one; a text of its own in lists and dates."""
    if name in _LISTS or name in _DATES:
        return text
    try:
        value = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text
    usable = isinstance(value, int | float) and abs(value) <= MAX_WHOLE_NUMBER
    return value if usable else text


def read_date(value: object) -> datetime | None:
    """Return the moment that a document names; None where it names none that can be read."""
    try:
        return to_utc(value, field="date") if isinstance(value, str) else None
    except InvalidInput:
        return None


def join(entries: Iterable[str]) -> str:
    """Join entries, each once, into the text that the metadata keep."""
    return JOINER.join(dict.fromkeys(entry for entry in entries if entry))


_LONGEST_ALIASES = 200


def make_heading(section: Section, *, name: str, note: NoteFacts) -> str:
    """Return what a piece of a note is found by: its headings, and the other names of the note.

    Args:
        section: Where it stands; below no title the name of the note stands for that.
        name: The path of the note.
        note: What it says of itself, its aliases among it.
    """
    stem, headings = PurePosixPath(name).stem, section.headings
    is_named = section.has_title or stem.casefold() in map(str.casefold, headings[:1])
    first, *below = headings if is_named else (stem, *headings)
    named = {heading.casefold() for heading in (first, *below)}
    aliases = str(note.metadata.get("aliases", "")).split(JOINER)
    others = ", ".join(alias for alias in aliases if alias and alias.casefold() not in named)
    called = f"{first} ({others[:_LONGEST_ALIASES]})" if others else first
    return " > ".join((called, *below))


_WRITTEN_DATES = (
    re.compile(r"(?<!\d)(?P<year>\d{4})[-_.](?P<month>\d{2})[-_.](?P<day>\d{2})(?!\d)"),
    re.compile(r"(?<![\d.])(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?![\d])"),
    re.compile(r"\A(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?!\w)"),
)
"""2026-05-01, 1.5.2026, and 20260501 where the text begins so."""


def find_date(name: str, dates: Mapping[str, datetime]) -> datetime | None:
    """Return the date of a note: its `date`, else the one in its file's name, else `created`."""
    named = _find_date_in(PurePosixPath(name).name)
    return dates.get("date") or named or dates.get("created")


def _find_date_in(text: str) -> datetime | None:
    """Return the date that stands in a text, with the time of the day where that ends the text."""
    for pattern in _WRITTEN_DATES:
        if found := pattern.search(text):
            parts = {part: int(digits) for part, digits in found.groupdict().items()}
            with suppress(ValueError):
                day = date(**parts).isoformat()
                return read_date(day + text[found.end() :]) or read_date(day)
    return None


# Text: code is left as it is, whatever it holds

_CODE = r"^[ \t]{0,12}(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*(?P=fence)|\Z)"
_INLINE_CODE = r"(?<!`)(?P<ticks>`{1,2})(?!`)[^`\n]{1,500}(?P=ticks)(?!`)"
_COMMENT = re.compile(
    rf"{_CODE}|{_INLINE_CODE}|(?P<comment>(?<![\w%])%%(?!%).*?%%)",
    re.MULTILINE | re.DOTALL,
)
_HIDDEN = SkippedPart("comment")
_MARK = re.compile(
    rf"{_CODE}|{_INLINE_CODE}"
    r"|(?P<embed>!)?\[\[(?P<target>[^\[\]|\n]{0,300})(?:\|(?P<shown>[^\[\]\n]{0,300}))?\]\]"
    r"|(?<!!)\[[^\[\]\n]{0,500}\]\((?!\w+:)<?(?P<path>[^()<>\n]{1,300}?\.md)"
    r"(?:#[^()<>\n]{0,300})?>?(?:[ \t]\"[^\"\n]{0,300}\")?\)"
    r"|(?<![\w/#&])#(?P<tag>[\w/-]*[^\W\d][\w/-]*)"
    r"|(?P<anchor>[ \t]\^[\w-]{1,60}[ \t]*$)",
    re.MULTILINE | re.DOTALL,
)
_QUERY_CODE = re.compile(r"`+\s*\$?=")
QUERIES = ("dataview", "dataviewjs", "tasks", "query")
"""Languages of code fences that hold a question to the vault, and no words."""
_MEDIA = re.compile(r"\.(?!md$)[a-z0-9]{2,5}$", re.IGNORECASE)


def part_comments(text: str) -> tuple[list[SkippedPart], str]:
    """Split `%%comments%%` from a text, in which a `%%` that is not closed stays.

    Returns:
        What was hidden, and the text with each line end kept, so that lines can be counted.
    """
    hidden: list[SkippedPart] = []

    def blank(found: re.Match[str]) -> str:
        if not found["comment"]:
            return found[0]
        hidden.append(_HIDDEN)
        return "\n" * found[0].count("\n")

    below = _COMMENT.sub(blank, text) if "%%" in text else text
    return hidden, below


@dataclass(frozen=True, slots=True)
class NoteText:
    """A text without the marks of a vault.

    Attributes:
        text: The words that a reader of the note sees.
        references: The notes and files that it links to or embeds, as the links call them.
        tags: The tags that stand in it.
    """

    text: str
    references: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def read_marks(text: str) -> NoteText:
    """Read the links, embeds and tags in a piece of a note."""
    references: list[str] = []
    tags: list[str] = []
    told = _MARK.sub(_make_replacement(references, tags), text)
    if told != text:
        told = re.sub(r"\n{3,}", "\n\n", told).strip("\n").rstrip()
    return NoteText(told, tuple(dict.fromkeys(references)), tuple(dict.fromkeys(tags)))


def _make_replacement(references: list[str], tags: list[str]) -> Callable[[re.Match[str]], str]:
    """Return what gives the words for a mark, and notes what it refers to."""

    def replace(found: re.Match[str]) -> str:
        if found["anchor"] or _QUERY_CODE.match(found[0]):
            return ""
        if found["tag"]:
            tags.append(found["tag"])
        elif found["path"]:
            references.append(unquote(found["path"]).removesuffix(".md"))
        elif found["target"] is not None:
            return _read_link(found, references)
        return found[0]

    return replace


def _read_link(found: re.Match[str], references: list[str]) -> str:
    note, _, place = found["target"].partition("#")
    note = note.strip().removesuffix(".md")
    if note:
        references.append(note)
    if found["embed"] and _MEDIA.search(note):
        return ""
    shown = "" if found["embed"] else (found["shown"] or "").strip()
    parts = (note, *place.replace("^", "").split("#"))
    return shown or " > ".join(part.strip() for part in parts if part.strip())
