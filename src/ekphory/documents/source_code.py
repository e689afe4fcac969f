"""Source code: each definition with its place, its name, and the comment above it."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.documents.blocks import Block, Read, SkippedPart
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.text import EMPTY, read_text

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

LARGEST_CODE = 2**20
"""Most bytes of a file whose definitions are looked for; others are read in blocks of lines."""
LONGEST_PARSE = 2.0
"""Most seconds of computing that a file is parsed for."""
DEEPEST_NESTING = 500
"""Most brackets in one another, and definitions in one another."""
_PARSED_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class CodeLanguage:
    """What the grammar of a language calls its parts; `languages.toml` says what each is for."""

    module: str
    grammar: str
    leading: frozenset[str]
    imports: frozenset[str]
    definitions: frozenset[str]
    containers: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()


_TABLE = tomllib.loads(files(__package__).joinpath("languages.toml").read_text("utf-8"))
_NO_KINDS = {"suffixes", "example", "names"}
_KINDS = {
    name: {key: frozenset(entry[key]) for key in entry.keys() - _NO_KINDS}
    for name, entry in _TABLE.items()
}
_BY_SUFFIX = {
    suffix: CodeLanguage(f"tree_sitter_{name}", grammar, **_KINDS[name])
    for name, entry in _TABLE.items()
    for suffix, grammar in entry["suffixes"].items()
}
CODE_SUFFIXES = tuple(_BY_SUFFIX)
CODE_MODULES = ("tree_sitter", *(f"tree_sitter_{name}" for name in _TABLE))
"""What `[code]` installs."""


def read_source_code(path: Path, settings: ReadingSettings) -> Iterator[Read]:
    """Read a file of source code: every definition, and what stands between them."""
    text = read_text(path, settings.encoding)
    if not isinstance(text, str):
        yield text
    elif text.strip():
        yield from parse_source_code(text, path)
    else:
        # Such as most `__init__.py`.
        yield EMPTY


_NAMED_BY_FOLDER = ("__init__", "index", "mod")


def parse_source_code(text: str, path: Path) -> Iterator[Block | SkippedPart]:
    """Return the definitions as blocks, each titled `module.Class.method`.

    What stands in no definition is titled by the module; what of a class is in none of its methods,
    by the class. A file that is too large, too deep or too slow to parse is one block.

    Args:
        text: The text of the file.
        path: Where it lies; its name says the module and the language.
    """
    module = path.parent.name if path.stem in _NAMED_BY_FOLDER else path.stem
    lines = text.split("\n")
    outline = _Outline(_BY_SUFFIX[path.suffix.lower()], [module], [0] * len(lines))
    if hindrance := outline.read(text.encode("utf-8", "replace")):
        yield SkippedPart(f"definitions of a file {hindrance}, read in blocks of lines")
        outline.owners = [0] * len(lines)
    if outline.is_broken:
        yield SkippedPart("definitions next to a syntax error, read with the lines around it")
    found = list(outline.part(lines))
    yield from found or [SkippedPart("mostly punctuation")]


_BRACKET = re.compile(rb"[()\[\]{}]")
_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*\)$")
_NAME_FIELDS = ("name", "property", "left", "type")
_VALUE_FIELDS = ("value", "right")
_IMPORTS = -1
_TOO_DEEP = f"nested over {DEEPEST_NESTING} deep"
# Bounded, so that a file of one long line takes no quadratic time.
_DEEPEST_INDENT = 500
_LONGEST_HEADING = 200


@dataclass(frozen=True, slots=True)
class _Place:
    """A node whose children are looked through for definitions.

    Attributes:
        node: The node.
        owner: The definition that it belongs to.
        depth: How many such places it lies in.
        above: First and last row of the comments right above it.
    """

    node: Node
    owner: int
    depth: int = 1
    above: tuple[int, int] | None = None


@dataclass(slots=True)
class _Outline:
    """The definitions of a file, and which of them each line belongs to.

    Attributes:
        language: What is looked for.
        headings: Of each definition; the first is the module's.
        owners: Of each line, the definition that it belongs to.
        is_broken: Whether the file has a syntax error.
    """

    language: CodeLanguage
    headings: list[str]
    owners: list[int]
    is_broken: bool = False
    _begun: list[int] = field(default_factory=lambda: [-1])
    _data: bytes = b""
    _waiting: list[_Place] = field(default_factory=list)

    def read(self, data: bytes) -> str | None:
        """Find the definitions; return what hindered it, if anything did."""
        if len(data) > LARGEST_CODE:
            return "over 1 MB"
        if _is_nested_deep(data):
            return _TOO_DEEP
        tree = _parse(data, _load_grammar(self.language.module, self.language.grammar))
        if tree is None:
            return "that takes over 2 s to parse"
        self._data, self.is_broken = data, tree.root_node.has_error
        self._waiting = [_Place(tree.root_node, 0)]
        while self._waiting:
            place = self._waiting.pop()
            if place.depth > DEEPEST_NESTING:
                return _TOO_DEEP
            self._look_through(place)
        return None

    def part(self, lines: list[str]) -> Iterator[Block | SkippedPart]:
        """Return the lines of each definition as a block, in the order of the file."""
        last = 0
        for owner, run in groupby(self.owners):
            first, last = last, last + len(list(run))
            if owner == _IMPORTS:
                yield SkippedPart("imports")
            elif block := _make_block(lines, first, last, self.headings[owner]):
                yield block

    def _look_through(self, place: _Place) -> None:
        above = place.above
        for child in place.node.children:
            if not child.is_named:
                continue
            first, last = child.start_point.row, _find_last_row(child)
            if above is not None and first > above[1] + 1:
                above = None
            if child.type in self.language.leading and self._begins_line(child):
                above = (first if above is None else above[0], last)
                continue
            if child.type in self.language.imports and self._begins_line(child, alone=True):
                self._own(_IMPORTS, first, last)
            elif child.type in self.language.groups or child.is_error:
                self._waiting.append(_Place(child, place.owner, place.depth + 1, above))
            elif self._is_definition(child):
                self._take(child, place, first if above is None else above[0], last)
            above = None

    def _is_definition(self, node: Node) -> bool:
        language = self.language
        if node.type in language.assigned:
            value = _find_field(node, _VALUE_FIELDS)
            while value is not None and value.type in language.calls:
                value = _find_field(value, ("arguments",))
                value = value and next(iter(value.named_children), None)
            return value is not None and value.type in language.values
        return node.type in language.definitions or node.type in language.containers

    def _take(self, node: Node, place: _Place, first: int, last: int) -> None:
        """Note a definition that begins on a line of its own."""
        name = _read_name(node, self._data)
        if not name or self.owners[first] != place.owner or self._begun[place.owner] == first:
            return
        owner, outer = len(self.headings), self.headings[place.owner]
        heading = name if name == outer else f"{outer}.{name}"
        self.headings.append(heading[:_LONGEST_HEADING])
        self._begun.append(first)
        self._own(owner, first, last)
        if node.type in self.language.containers:
            body = node.child_by_field_name("body")
            # Next to a syntax error what it holds is not all in its body.
            parts = (child for child in node.children if child == body or child.is_error)
            self._waiting += [_Place(part, owner, place.depth + 1) for part in parts]

    def _own(self, owner: int, first: int, last: int) -> None:
        self.owners[first : last + 1] = [owner] * (last + 1 - first)

    def _begins_line(self, node: Node, *, alone: bool = False) -> bool:
        """Whether nothing stands before a node on its line, and, alone, nothing behind it."""
        start, end, column = node.start_byte, node.end_byte, node.start_point.column
        if column > _DEEPEST_INDENT:
            return False
        before = self._data[start - column : start]
        behind = self._data[end : end + _DEEPEST_INDENT].partition(b"\n")[0] if alone else b""
        return not before.strip() and not behind.strip(b"; \t")


def _is_nested_deep(data: bytes) -> bool:
    """Whether brackets are nested as no person does, which a parser may need minutes for."""
    depth = 0
    for found in _BRACKET.finditer(data):
        depth = depth + 1 if found[0] in b"([{" else max(0, depth - 1)
        if depth > DEEPEST_NESTING:
            return True
    return False


@cache
def _load_grammar(module: str, name: str) -> Language:
    from tree_sitter import Language

    found = import_module(module)
    # A module of several grammars names each.
    load = getattr(found, f"language_{name}", None) or found.language
    return Language(load())


def _parse(data: bytes, grammar: Language) -> Tree | None:
    """Parse a text; return None where that takes too long."""
    from tree_sitter import Parser

    begun = time.thread_time()
    try:
        # Only a text that is given piece by piece can be left in the middle.
        return Parser(grammar).parse(
            lambda start, _point: data[start : start + _PARSED_BYTES],
            progress_callback=lambda _start, _failed: time.thread_time() - begun > LONGEST_PARSE,
        )
    except ValueError:
        return None


def _find_last_row(node: Node) -> int:
    """Return the row that a node ends in; a comment may end where the next one begins."""
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def _find_field(node: Node, names: tuple[str, ...]) -> Node | None:
    found = (node.child_by_field_name(name) for name in names)
    return next((child for child in found if child is not None), None)


def _read_name(node: Node, data: bytes) -> str:
    """Return the name of a definition: `Basket.Total` for a method with a receiver."""
    name = _read_text(_find_field(node, _NAME_FIELDS), data)
    name = name.partition("<")[0].rpartition("::")[2].strip("\"' ")
    told = _read_text(node.child_by_field_name("receiver"), data)
    receiver = _RECEIVER.search(told[-_LONGEST_HEADING:])
    return f"{receiver[1]}.{name}" if receiver and name else name


def _read_text(node: Node | None, data: bytes) -> str:
    return "" if node is None else data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _make_block(lines: list[str], first: int, last: int, heading: str) -> Block | None:
    while first < last and not lines[first].strip():
        first += 1
    while first < last and not lines[last - 1].strip():
        last -= 1
    text = "\n".join(line.rstrip() for line in lines[first:last])
    if not any(sign.isalnum() for sign in text):
        return None
    return Block(text, "code", first + 1, last, level=1, title=heading, verbatim=True)
