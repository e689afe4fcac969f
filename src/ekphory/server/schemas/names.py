"""Names, timestamps and errors on the wire."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    WithJsonSchema,
    model_validator,
)

from ekphory.errors import InvalidInput, suggest
from ekphory.service.handles import FEATURES
from ekphory.types import to_utc


class Wire(BaseModel):
    """What travels over the wire; the docstrings of its fields are described in the document."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def refuse_others(given: object, known: Iterable[str]) -> object:
    """Refuse a name that is not known: unheeded, it would leave open what it was to bind.

    Raises:
        InvalidInput: It is none of those that are known.
    """
    names = tuple(known)
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if name not in names:
            remedy = suggest(name, names) or f"Give {', '.join(names)}"
            raise InvalidInput(name, value, "no such field", remedy.strip())
    return given


class Asked(Wire):
    """What is asked, under these names and no others.

    MemMachine's own server passes over what it does not know, a misspelt limit or filter too. Its
    released clients (Python, TypeScript, n8n) send no other names than these.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _names_nothing_else(cls, given: object) -> object:
        return refuse_others(given, cls.model_fields)


# Errors on the wire, as MemMachine's clients read them.


class ErrorDetail(BaseModel):
    """What went wrong."""

    code: int
    message: str
    internal_error: str
    exception: str
    trace: str = ""


class ErrorAnswer(BaseModel):
    """An error; a text alone where nothing more is known."""

    detail: ErrorDetail | str


# Moments as clients give them: ISO 8601, or seconds or milliseconds since 1970.

_MILLISECONDS_FROM = 1e12
"""A larger number counts milliseconds: as seconds it would lie 31,000 years ahead."""


def _moment(value: object) -> datetime:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if value > _MILLISECONDS_FROM else value
            return to_utc(datetime.fromtimestamp(seconds, tz=UTC), field="timestamp")
        if isinstance(value, str | datetime):
            return to_utc(value, field="timestamp")
    except (InvalidInput, OverflowError, OSError, ValueError) as error:
        raise ValueError(f"no moment ({error})") from error
    raise ValueError("no moment: give ISO 8601, or seconds since 1970")


Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}],
            "examples": ["2026-05-01T10:00:00Z"],
        }
    ),
]


# Names of organisations, projects and ids, and the numbers that all requests share.

UNIVERSAL = "universal"
"""The organisation and the project of a request that names none."""
LONGEST_NAME = 1_000
_MOST_ENTRIES = 1_000
_ID = re.compile(r"[\w:-]+")


def _is_id(value: str) -> str:
    if not _ID.fullmatch(value) or len(value) > LONGEST_NAME:
        raise ValueError("must have 1 to 1,000 letters, digits, underscores, hyphens and colons")
    return value


def _is_name(value: str) -> str:
    if not value.strip() or not value.isprintable() or len(value) > LONGEST_NAME:
        raise ValueError("must have 1 to 1,000 characters that can be printed")
    if value.endswith(FEATURES):
        raise ValueError(f"must not end with {FEATURES!r}, as the scopes of features do")
    return value


Name = Annotated[
    str,
    AfterValidator(_is_name),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}),
]
"""Characters that can be printed, such as `github.com/acme/app`."""
IdOrEmpty = Annotated[str, AfterValidator(lambda value: value and _is_id(value))]
"""Letters and digits of any script, `_`, `-` and `:`."""


def has_few_entries(value: object) -> object:
    """Refuse a mapping of very many entries.

    Raises:
        ValueError: It has more than 1,000.
    """
    # Before anything is made of it: each wrong entry would be an error of its own.
    if isinstance(value, dict) and len(value) > _MOST_ENTRIES:
        raise ValueError(f"must have at most {_MOST_ENTRIES:,} entries, got {len(value):,}")
    return value


Metadata = Annotated[dict[str, str], BeforeValidator(has_few_entries)]
JsonMetadata = Annotated[dict[str, JsonValue], BeforeValidator(has_few_entries)]
MOST_IDS = 10_000
Ids = Annotated[list[IdOrEmpty], Field(max_length=MOST_IDS, fail_fast=True)]
"""Names of what is deleted; the first wrong one is told, and no further one looked at."""
Tags = Annotated[list[str], Field(max_length=_MOST_ENTRIES, fail_fast=True)]


class InProject(Asked):
    """Names a project; the universal one where it names none."""

    org_id: Annotated[Name, Field(examples=["home"])] = UNIVERSAL
    """The organisation."""

    project_id: Annotated[Name, Field(examples=["chat"])] = UNIVERSAL
    """The project."""
