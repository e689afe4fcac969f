"""The text form of filters: MemMachine's grammar without its quirks, read and printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar, cast

from ekphory.errors import FilterError
from ekphory.filters.tree import (
    MAX_NESTING,
    MAX_TEXT,
    SYMBOLS,
    And,
    Comparison,
    Contains,
    Field,
    FieldReference,
    Filter,
    In,
    IsNull,
    MetadataField,
    Not,
    Operator,
    Or,
    Value,
    check_comparison,
    check_contains,
    check_field,
    check_filter,
    join,
    nesting_error,
    read_moment,
)

# The words of the grammar.

TokenKind = Literal["text", "key", "number", "word", "operator", "mark", "end"]

# Possessive quantifiers (++, *+) keep the reading linear in the length of the text.
_TOKEN = re.compile(
    r"""
      (?P<space>\s++)
    | (?P<text>'(?:[^']|'')*+')
    | (?P<key>(?:m\.|metadata\.)?"(?:[^"]|"")*+")
    | (?P<number>[+-]?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+(?![\w.]))
    | (?P<word>[\w.]++)
    | (?P<operator><>|!=|<=|>=|=|<|>)
    | (?P<mark>[(),])
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[\w.]+")


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a filter.

    Attributes:
        kind: What it is; `end` is the end of the text.
        text: The characters as the caller wrote them.
        start: Zero-based position of the first one.
    """

    kind: TokenKind
    text: str
    start: int

    @property
    def place(self) -> str:
        """Where the token stands, as errors say it; people count from 1."""
        return f" at character {self.start + 1}"

    @property
    def keyword(self) -> str:
        """The word in capitals, since keywords are case-insensitive; empty for another kind."""
        return self.text.upper() if self.kind == "word" else ""


def tokenize(text: str) -> list[Token]:
    """Split a filter into tokens, the last of which has the kind `end`.

    Raises:
        FilterError: A character that belongs to no token, or a quote that is not closed.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _unreadable(text, position)
        if found.lastgroup != "space":
            tokens.append(Token(cast(TokenKind, found.lastgroup), found[0], position))
        position = found.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def _unquote(quoted: str) -> str:
    """Return the content of a quoted token, in which a doubled quote stands for one."""
    quote = quoted[-1]
    return quoted[1:-1].replace(quote * 2, quote)


def _unreadable(text: str, position: int) -> FilterError:
    place = f" at character {position + 1}"
    if text[position] in "'\"":
        remedy = "Close the quote; inside it, write the quote itself twice."
        return FilterError("filter", text[position:], f"quote never closed{place}", remedy)
    remedy = "Put texts in single quotes and odd metadata keys in double ones: m.\"a-b\" = 'x'."
    return FilterError("filter", text[position], f"unknown character{place}", remedy)


# The grammar.
#
#     any_of    := all_of (OR all_of)*
#     all_of    := part (AND part)*
#     part      := NOT part | "(" any_of ")" | TRUE | FALSE | condition
#     condition := field ( = | != | <> | > | < | >= | <= ) value
#                | field [NOT] IN "(" [value ("," value)*] ")"
#                | field [NOT] CONTAINS 'text'
#                | field [NOT] HAS 'entry'
#                | field IS [NOT] NULL
#     field     := name | m.key | metadata.key | m."any key" | "any key"
#     value     := 'text' | number | TRUE | FALSE | date('ISO 8601')
#
# A doubled quote inside quotes stands for one. Keywords are case-insensitive. HAS looks for a whole
# entry of a list that is written as one text, such as "person: Ann; place: Bonn".
#
# Own recursive descent: a parser library would save a third of it, and its errors name no remedy.

Item = TypeVar("Item")
_PREFIXES = ("m.", "metadata.")
_CONDITION_REMEDY = "Follow the field with =, !=, <, <=, >, >=, IN, CONTAINS, HAS or IS [NOT] NULL."
_VALUE_REMEDY = "Write a text in single quotes, a number, true, false or date('2026-05-01')."


def parse_filter(text: str) -> Filter:
    """Read a filter from its text form and check it.

    Args:
        text: At most 10,000 characters, for example `producer = 'Anna' AND m.year >= 2024`.

    Returns:
        The tree in the normal form of `check_filter`.

    Raises:
        FilterError: The text cannot be read, or breaks a rule of `check_filter`.
    """
    remedy = "Write a condition such as producer = 'Anna'."
    if not isinstance(text, str) or not text.strip():
        raise FilterError("filter", text, "no text to read a filter from", remedy)
    if len(text) > MAX_TEXT:
        problem = f"longer than {MAX_TEXT} characters"
        raise FilterError("filter", text, problem, "Build long filters in Python.")
    return check_filter(_Parser(tokenize(text)).parse())


class _Parser:
    """Reads one list of tokens, from the first to the last."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    def parse(self) -> Filter:
        tree = self._any_of()
        if self._token.kind != "end":
            raise self._unexpected("nothing more fits", "Join conditions with AND or OR.")
        return tree

    @property
    def _token(self) -> Token:
        return self._tokens[self._index]

    def _advance(self) -> Token:
        token = self._token
        if token.kind != "end":
            self._index += 1
        return token

    def _accept(self, *expected: str) -> bool:
        """Step over the keywords or marks when they all come next."""
        upcoming = self._tokens[self._index : self._index + len(expected)]
        found = tuple(t.text if t.kind == "mark" else t.keyword for t in upcoming)
        if found != expected:
            return False
        self._index += len(expected)
        return True

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            raise self._unexpected(f"{mark} expected", f"Write {mark} here.")

    def _unexpected(self, problem: str, remedy: str) -> FilterError:
        token = self._token
        shown = token.text or "end of the filter"
        return FilterError("filter", shown, f"{problem}{token.place}", remedy)

    def _any_of(self) -> Filter:
        return join(Or, self._read_joined("OR", self._all_of))

    def _all_of(self) -> Filter:
        return join(And, self._read_joined("AND", self._part))

    def _read_joined(self, separator: str, read: Callable[[], Item]) -> list[Item]:
        found = [read()]
        while self._accept(separator):
            found.append(read())
        return found

    def _part(self) -> Filter:
        token = self._token
        if self._accept("NOT"):
            return Not(self._deeper(token, self._part))
        if self._accept("("):
            inner = self._deeper(token, self._any_of)
            self._expect(")")
            return inner
        if self._accept("TRUE"):
            return And(())
        if self._accept("FALSE"):
            return Or(())
        return self._condition()

    def _deeper(self, token: Token, read: Callable[[], Filter]) -> Filter:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise nesting_error(token.text, token.place)
        tree = read()
        self._depth -= 1
        return tree

    def _condition(self) -> Filter:
        field = self._field()
        if self._token.kind == "operator":
            return self._comparison(field, SYMBOLS[self._advance().text])
        if self._accept("IS", "NULL"):
            return IsNull(field)
        if self._accept("IS", "NOT", "NULL"):
            return Not(IsNull(field))
        if self._accept("IS"):
            raise self._unexpected("NULL expected", "Write IS NULL or IS NOT NULL.")
        if self._accept("NOT"):
            return Not(self._membership(field))
        return self._membership(field)

    def _membership(self, field: FieldReference) -> Filter:
        if self._accept("IN"):
            return In(field, self._values(field))
        if self._accept("CONTAINS"):
            place = self._token.place
            return check_contains(Contains(field, self._text()), place)
        if self._accept("HAS"):
            place = self._token.place
            return check_contains(Contains(field, self._text(), whole=True), place)
        raise self._unexpected("no condition", _CONDITION_REMEDY)

    def _comparison(self, field: FieldReference, operator: Operator) -> Comparison:
        place = self._token.place
        return check_comparison(Comparison(field, operator, self._value()), place)

    def _field(self) -> FieldReference:
        token = self._token
        if token.kind not in ("word", "key"):
            raise self._unexpected("a field expected", "Start a condition with a field's name.")
        self._advance()
        return check_field(_field_reference(token), token.place)

    def _values(self, field: FieldReference) -> tuple[Value, ...]:
        self._expect("(")
        if self._accept(")"):
            return ()
        values = self._read_joined(",", lambda: self._comparison(field, "eq").value)
        self._expect(")")
        return tuple(values)

    def _value(self) -> Value:
        token = self._token
        if token.kind == "text":
            return self._text()
        if token.kind == "number":
            return _number(self._advance())
        if self._accept("TRUE"):
            return True
        if self._accept("FALSE"):
            return False
        if self._accept("DATE", "("):
            return self._date()
        if token.keyword == "NULL":
            raise self._unexpected("NULL is not a value", "Write IS NULL or IS NOT NULL.")
        raise self._unexpected("a value expected", _VALUE_REMEDY)

    def _text(self) -> str:
        if self._token.kind != "text":
            raise self._unexpected("a text expected", "Write the text in single quotes.")
        return _unquote(self._advance().text)

    def _date(self) -> datetime:
        place = self._token.place
        moment = read_moment(self._text(), place)
        self._expect(")")
        return moment


def _field_reference(token: Token) -> FieldReference:
    prefix = next((p for p in _PREFIXES if token.text.startswith(p)), "")
    name = token.text.removeprefix(prefix)
    if token.kind == "key":
        return MetadataField(_unquote(name))
    return MetadataField(name) if prefix else Field(name)


def _number(token: Token) -> int | float:
    whole = not any(character in token.text for character in ".eE")
    # int() refuses to read more than 4,300 digits; as a float they are infinite, and refused.
    return int(token.text) if whole and len(token.text) <= 4_000 else float(token.text)


# Printing.

_SYMBOLS_BY_OPERATOR = {operator: symbol for symbol, operator in SYMBOLS.items() if symbol != "<>"}


def format_filter(tree: Filter) -> str:
    """Print a filter in the grammar; `parse_filter` of it gives the filter's normal form.

    A filter built in Python may print longer than the 10,000 characters `parse_filter` reads.

    Raises:
        FilterError: The filter breaks a rule of `check_filter`.
    """
    return _print(check_filter(tree))


def _print(tree: Filter) -> str:
    match tree:
        case And(children=children):
            return " AND ".join(map(_print_part, children)) if children else "TRUE"
        case Or(children=children):
            return " OR ".join(map(_print_alternative, children)) if children else "FALSE"
        case Not(child=In() | Contains() | IsNull() as child):
            return _print_condition(child, "NOT ")
        case Not(child=child):
            return f"NOT {_print_part(child)}"
        case _:
            return _print_condition(tree)


def _print_part(tree: Filter) -> str:
    match tree:
        case And(children=children) | Or(children=children) if children:
            return f"({_print(tree)})"
        case _:
            return _print(tree)


def _print_alternative(tree: Filter) -> str:
    return _print_part(tree) if isinstance(tree, Or) else _print(tree)


def _print_condition(condition: Comparison | In | Contains | IsNull, negation: str = "") -> str:
    field = _print_field(condition.field)
    match condition:
        case Comparison(operator=operator, value=value):
            return f"{field} {_SYMBOLS_BY_OPERATOR[operator]} {_print_value(value)}"
        case In(values=values):
            return f"{field} {negation}IN ({', '.join(map(_print_value, values))})"
        case Contains(text=text, whole=whole):
            return f"{field} {negation}{'HAS' if whole else 'CONTAINS'} {_print_value(text)}"
        case IsNull():
            return f"{field} IS {negation}NULL"


def _print_field(field: FieldReference) -> str:
    match field:
        case Field(name=name):
            return name
        case MetadataField(key=key) if _WORD.fullmatch(key):
            return f"m.{key}"
        case MetadataField(key=key):
            doubled = key.replace('"', '""')
            return f'm."{doubled}"'


def _print_value(value: Value) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            doubled = value.replace("'", "''")
            return f"'{doubled}'"
        case datetime():
            return f"date('{value.isoformat()}')"
        case int() | float():
            return repr(value)
