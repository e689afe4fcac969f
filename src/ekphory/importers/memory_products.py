"""Imports from other memory products: LangMem, mem0 and Zep."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from ekphory.errors import InvalidInput
from ekphory.importers import source
from ekphory.scope import SCOPE_FIELDS
from ekphory.types import MAX_WHOLE_NUMBER, Scalar, are_strings, is_storable, now_utc

_LINES_SUFFIXES = (".jsonl", ".ndjson")
_DEEPEST = 3
"""How many lists may lie within each other."""


@dataclass(frozen=True, slots=True)
class Row:
    """One object of an export that stands for a memory.

    Attributes:
        value: The object.
        place: Where it is, for people.
        around: What the objects say whose lists hold it, the inner ones first.
    """

    value: Mapping[str, object]
    place: str
    around: Mapping[str, object] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a text without the white space around it.

        Raises:
            InvalidInput: It is missing or empty.
        """
        found = self.value.get(name)
        if not isinstance(found, str) or not found.strip():
            raise InvalidInput(name, found, "no text here", f"Give {name} a text")
        return found.strip()

    def moment(self, *names: str) -> datetime:
        """Return the first of these moments that is there.

        Raises:
            InvalidInput: None is there, or it cannot be read.
        """
        for name in names:
            if (value := self.value.get(name)) is not None:
                return read_timestamp(name, value)
        raise InvalidInput(names[-1], None, "no moment here", f"Add {names[-1]}, in ISO 8601")

    def name(self, *names: str) -> str | None:
        """Return the first of these names, of the row, else of what is around it.

        Raises:
            InvalidInput: One is neither a text nor a whole number.
        """
        for values in (self.value, self.around):
            for name in names:
                found = values.get(name)
                if isinstance(found, int) and not isinstance(found, bool):
                    return str(found)
                if not isinstance(found, str | None):
                    problem = "must be a text or a whole number"
                    raise InvalidInput(name, found, problem, 'Give a name such as "mara"')
                if found and found.strip():
                    return found
        return None


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How a product's rows are found and read.

    Attributes:
        lists: Names of the lists that may hold rows, or objects with such lists.
        is_row: Whether an object is a row.
        expected: What a row has, for the report of an object that is none.
        fields_of: Gives the fields of the memory, None where there is none in the row; raises
            InvalidInput where the row is broken.
    """

    lists: tuple[str, ...]
    is_row: Callable[[Mapping[str, object]], bool]
    expected: str
    fields_of: Callable[[Row], dict[str, object] | None]


def read_rows(path: Path, form: RowFormat) -> Iterator[source.Readable]:
    """Read the rows of an export, one at a time.

    Args:
        path: A JSON file, whose array is read in bounded memory, or a JSON Lines file.
        form: The product's form.

    Yields:
        One record for each row that holds a memory, one `Unreadable` for each that is broken.
    """
    for found in _read_lines(path) if _is_json_lines(path) else _read_elements(path):
        for row in _find_rows(found, form, depth=0):
            if isinstance(row, source.Unreadable):
                yield row
                continue
            try:
                fields = form.fields_of(row)
            except InvalidInput as error:
                yield source.Unreadable(row.place, error.field, str(error), str(row.value)[:500])
                continue
            if fields is not None:
                yield source.ImportedRecord(fields, row.place)


def read_timestamp(name: str, value: object) -> datetime:
    """Read a moment.

    Raises:
        InvalidInput: The value is not a moment.
    """
    if (found := source.read_moment(value)) is None:
        remedy = "Give ISO 8601, or seconds since 1970"
        raise InvalidInput(name, value, "must be a timestamp", remedy)
    return found


def _is_json_lines(path: Path) -> bool:
    """Whether several lines hold an object each; a single one is read as JSON all the same."""
    if path.suffix.lower() in _LINES_SUFFIXES:
        return True
    lines = source.iterate_numbered_lines(path)
    written = (line for _, line in lines if line is None or line.strip())
    first, second = next(written, None), next(written, None)
    return first is not None and second is not None and source.parse_object(first) is not None


def _read_lines(path: Path) -> Iterator[Row | source.Unreadable]:
    for found in source.stream_lines(path):
        if isinstance(found, source.Unreadable):
            yield found
            continue
        place, line = found
        if (value := source.parse_object(line)) is not None:
            yield Row(value, place)
        else:
            shown = line[:500].decode("utf-8", errors="replace").strip()
            yield source.Unreadable(place, "line", "not a JSON object. Mend this line.", shown)


def _read_elements(path: Path) -> Iterator[Row | source.Unreadable]:
    for found in source.stream_elements(path, "element"):
        yield found if isinstance(found, source.Unreadable) else _make_row(*found, around={})


def _find_rows(
    found: Row | source.Unreadable, form: RowFormat, *, depth: int
) -> Iterator[Row | source.Unreadable]:
    """Return the object itself where it is a row, else those in its lists."""
    if isinstance(found, source.Unreadable) or form.is_row(found.value):
        yield found
        return
    held = {name: value for name in form.lists if isinstance(value := found.value.get(name), list)}
    if not held or depth == _DEEPEST:
        problem = f"no {form.expected} here, nor a list of such under {', '.join(form.lists)}."
        yield source.Unreadable(found.place, "row", problem, str(found.value)[:500])
        return
    around = {**found.around, **{k: v for k, v in found.value.items() if k not in held}}
    for name, elements in held.items():
        for position, element in enumerate(elements):
            row = _make_row(f"{found.place}, {name} {position}", element, around)
            yield from _find_rows(row, form, depth=depth + 1)


def _make_row(place: str, found: object, around: Mapping[str, object]) -> Row | source.Unreadable:
    if isinstance(found, dict):
        return Row(found, place, around)
    return source.Unreadable(place, "row", "not an object.", str(found)[:500])


# Metadata of other products, nested and named as it may be, as the scalars of a memory and back.
#
# A memory's metadata holds texts, numbers and booleans, under any name but those of the scope. What
# else there is stands as JSON under `json:name`, and a name that is taken as `own:name`.

_JSON = "json:"
_OWN = "own:"


def to_scalars(given: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return metadata in the form that a memory holds; `from_scalars` gives it back, equal.

    Raises:
        InvalidInput: It is not a mapping of texts to what JSON can hold.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput("metadata", given, "must be a mapping", 'Give {"category": "food"}')
    return dict(_store_entry(name, value) for name, value in given.items())


def from_scalars(stored: Mapping[str, Scalar]) -> dict[str, Any]:
    """Return metadata as it was before `to_scalars`."""
    return dict(_restore_entry(name, value) for name, value in stored.items())


def stored_name(name: str) -> str:
    """Return the name under which `to_scalars` keeps a text, a number or a boolean."""
    is_taken = name in SCOPE_FIELDS or name.startswith((_JSON, _OWN))
    return _OWN + name if is_taken else name


def _store_entry(name: object, value: object) -> tuple[str, Scalar]:
    if not isinstance(name, str):
        raise InvalidInput("metadata", name, "must be a name", "Give texts as names")
    if name and _is_plain(value):
        return stored_name(name), value  # type: ignore[return-value]
    try:
        return _JSON + name, json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        field_name, problem = f"metadata.{name[:40]}", f"cannot be kept ({error})"
        raise InvalidInput(field_name, value, problem, "Give what JSON can hold") from error


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return is_storable(value)
    is_short = isinstance(value, int) and abs(value) <= MAX_WHOLE_NUMBER
    return is_short or (isinstance(value, float) and math.isfinite(value))


def _restore_entry(name: str, value: Scalar) -> tuple[str, Any]:
    if name.startswith(_OWN):
        return name.removeprefix(_OWN), value
    if name.startswith(_JSON) and isinstance(value, str):
        with suppress(ValueError):  # somebody named it so himself
            return name.removeprefix(_JSON), json.loads(value)
    return name, value


_CONTENT = "content"


def read_langmem(path: Path) -> Iterator[source.Readable]:
    """Read the items of a LangGraph store, as `item.dict()` or a dump of its table gives them.

    The text is that of LangMem's `content`; a memory of a schema of one's own, and any other
    value, is written out, a line for each field, and its fields are metadata too.

    Args:
        path: A JSON array of items, `{"items": […]}`, or one item a line.

    Returns:
        One record for each item, or one `Unreadable` for each that is broken.
    """
    return read_rows(path, _LANGMEM_FORM)


def _read_langmem_fields(row: Row) -> dict[str, object]:
    value = row.value.get("value")
    if not isinstance(value, dict):
        raise InvalidInput("value", value, "must be an object", "Give the item's value")
    namespace = _read_namespace(row)
    text, parts = _read_content(value)
    key, changed = row.text("key"), row.value.get("updated_at")
    beside = {"namespace": ".".join(namespace), "key": key, "kind": value.get("kind")}
    kept = parts | beside | {"updated_at": changed}
    return {
        "id": "/".join(map(_escape, [*namespace, key])),
        "text": text,
        "at": row.moment("created_at"),
        "source": "langmem",
        "metadata": to_scalars(_drop_missing(kept)),
    }


def _read_namespace(row: Row) -> list[str]:
    """Return the labels: a list in an item, one text with dots in a table."""
    found = row.value.get("namespace", row.value.get("prefix"))
    labels = found.split(".") if isinstance(found, str) else found
    if not isinstance(labels, list) or not are_strings(labels):
        problem = "must be a list of labels"
        raise InvalidInput("namespace", found, problem, 'Give ["memories", "mara"]')
    return labels


def _drop_missing(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _escape(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")


def _read_content(value: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what a value says, and which of its parts are worth keeping beside."""
    beside = {name: part for name, part in value.items() if name not in (_CONTENT, "kind")}
    content = value.get(_CONTENT, beside)
    if isinstance(content, str):
        return content, beside
    if not isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False), beside
    inner = {name: part for name, part in content.items() if name != _CONTENT}
    text = content.get(_CONTENT)
    if isinstance(text, str):
        return text, beside | inner
    lines = (f"{name}: {_write_out(part)}" for name, part in content.items() if part is not None)
    return "\n".join(lines), beside | inner


def _write_out(part: object) -> str:
    return part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)


_LANGMEM_FORM = RowFormat(
    ("items", "results"),
    lambda value: "value" in value and "key" in value,
    "key and value",
    _read_langmem_fields,
)

_READ = {
    *("id", "memory", "created_at", "user_id", "agent_id", "run_id", "role", "actor_id"),
    *("metadata", "expiration_date"),
}
_MADE_ANEW = {"hash", "score", "score_details", "text_lemmatized"}


def read_mem0(path: Path) -> Iterator[source.Readable]:
    """Read the memories of a mem0 export.

    Users, agents and runs become the scope; what else a memory has, such as `categories` and
    `updated_at`, goes into its metadata. A memory that has expired is reported and left out.

    Args:
        path: What `get_all` gave, as JSON: `{"results": […]}`, a list, or one memory a line.

    Returns:
        One record for each memory, or one `Unreadable` for each that is broken.
    """
    return read_rows(path, _MEM0_FORM)


def _read_mem0_fields(row: Row) -> dict[str, object]:
    role, metadata = row.name("role"), row.value.get("metadata")
    unread = {name: value for name, value in row.value.items() if name not in _READ | _MADE_ANEW}
    beside = _drop_missing(unread)
    return {
        "id": row.text("id"),
        "text": row.text("memory"),
        "at": row.moment("created_at"),
        "expires_at": _read_expiry(row),
        "user": row.name("user_id"),
        "agent": row.name("agent_id"),
        "session": row.name("run_id"),
        "producer": row.name("actor_id") or role,
        "role": role,
        "source": "mem0",
        "metadata": to_scalars(beside | (metadata if isinstance(metadata, dict) else {})),
    }


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _read_expiry(row: Row) -> object:
    if (value := row.value.get("expiration_date")) is None:
        return None
    moment = read_timestamp("expiration_date", value)
    if isinstance(value, str) and _DAY.fullmatch(value.strip()):
        moment += timedelta(days=1)  # it holds until the end of that day
    if moment <= now_utc():
        remedy = "Remove it to import this memory all the same"
        raise InvalidInput("expiration_date", value, "has passed", remedy)
    return moment


_MEM0_FORM = RowFormat(
    ("results", "memories"), lambda value: "memory" in value, "memory", _read_mem0_fields
)

_ZEP_ROLES = frozenset("norole system assistant ai user human function tool".split())
_SESSION = ("thread_id", "session_id", "thread_uuid")
_IDS = ("uuid", "uuid_")
_ZEP_READ = {
    *(*_IDS, *_SESSION, "user_id", "content", "fact", "role", "role_type", "name", "created_at"),
    *("reference_time", "valid_at", "metadata", "attributes"),
}
_NOT_KEPT = {
    *("processed", "token_count", "score", "relevance", "content_policy"),
    *("fact_embedding", "content_embedding"),
}
_ENDINGS = ("invalid_at", "expired_at")
_SUCCEEDS_WITHIN = timedelta(days=1)
"""How far the moments may lie apart at which a fact ends and its successor begins: a text often
tells them by the day."""


def read_zep(path: Path) -> Iterator[source.Readable]:
    """Read what Zep's API gives: messages, edges with their facts, and episodes.

    A message keeps its thread as session. A fact is a semantic memory of the moment from which it
    holds. One that has ended, by `invalid_at` or else `expired_at`, is given again after all
    others, with the fact of the same source node and relation that begins when it ends; one that
    ends later expires then. Nodes and communities are left out: what they say stands in the
    episodes. So are messages without a word.

    Args:
        path: JSON, as the API or its SDKs give it, in lists of any of the usual names, or one
            message, edge or episode a line.

    Returns:
        One record for each, or one `Unreadable` for each that is broken; then the ended ones.
    """
    ended: dict[_Relation, list[datetime]] = {}
    for found in read_rows(path, _ZEP_FORM):
        if isinstance(found, source.ImportedRecord) and (since := _read_end(found.fields)):
            ended.setdefault(_relation_of(found.fields), []).append(since)
        yield found
    if ended:
        yield from _read_ended(path, _find_successors(path, ended))


_Relation = tuple[object, ...]
_Successors = dict[_Relation, list[tuple[datetime, str]]]


def _relation_of(fields: Mapping[str, Any]) -> _Relation:
    """Return what a fact has in common with one that replaces it: whose, of what, which."""
    metadata = fields["metadata"]
    return fields["user"], metadata.get("source_node_uuid"), metadata.get("relation")


def _read_end(fields: Mapping[str, Any]) -> datetime | None:
    """Return since when a fact does not hold any more; None where it holds, or cannot be named."""
    if fields.get("type") != "semantic" or not fields["id"]:
        return None
    end = _find_ending(fields["metadata"])
    return end if end is not None and end <= now_utc() else None


def _find_ending(metadata: Mapping[str, object]) -> datetime | None:
    moments = (source.read_moment(metadata.get(name)) for name in _ENDINGS)
    return next(filter(None, moments), None)


def _find_successors(path: Path, ended: Mapping[_Relation, list[datetime]]) -> _Successors:
    """Return the facts that begin when another one of their relation ends."""
    found: _Successors = {}
    for record, begins in _read_facts(path):
        relation = _relation_of(record.fields)
        ends = ended.get(relation, ())
        if relation[1] and any(abs(begins - end) <= _SUCCEEDS_WITHIN for end in ends):
            found.setdefault(relation, []).append((begins, str(record.fields["id"])))
    return found


def _read_ended(path: Path, successors: _Successors) -> Iterator[source.EndedRecord]:
    for record, began in _read_facts(path):
        if (since := _read_end(record.fields)) is not None:
            begun = successors.get(_relation_of(record.fields), ())
            later = [(abs(each - since), name) for each, name in begun if began < each]
            close = [found for found in later if found[0] <= _SUCCEEDS_WITHIN]
            successor = min(close, default=(None, None))[1]
            yield source.EndedRecord(record.fields, record.place, since, successor)


def _read_facts(path: Path) -> Iterator[tuple[source.ImportedRecord, datetime]]:
    """Read the facts again, each with the moment from which it holds."""
    for found in read_rows(path, _ZEP_FORM):
        if isinstance(found, source.ImportedRecord) and found.fields.get("type") == "semantic":
            yield found, cast("datetime", found.fields["at"])


def _read_zep_fields(row: Row) -> dict[str, object] | None:
    if "fact" in row.value:
        end = _find_ending(row.value)
        fields = _read_origin(row) | {
            "text": row.text("fact"),
            "at": row.moment("valid_at", "created_at"),
            "type": "semantic",
            "metadata": _read_metadata(row, relation=row.value.get("name")),
        }
        return fields if end is None or end <= now_utc() else fields | {"expires_at": end}
    content = row.value.get("content")
    if content is None or (isinstance(content, str) and not content.strip()):
        return None
    role, producer = _read_speaker(row)
    return _read_origin(row) | {
        "text": row.text("content"),
        "at": row.moment("reference_time", "created_at"),
        "role": role,
        "producer": producer,
        "session": row.name(*_SESSION),
        "metadata": _read_metadata(row),
    }


def _read_origin(row: Row) -> dict[str, object]:
    identity = next((row.value[name] for name in _IDS if row.value.get(name)), None)
    return {"id": identity, "user": row.name("user_id"), "source": "zep"}


def _read_speaker(row: Row) -> tuple[str | None, str | None]:
    """Return role and name: newer exports write `role` and `name`, older `role_type` and `role`."""
    written = {name: row.value.get(name) for name in ("role", "role_type", "name")}
    role, older, name = (value if isinstance(value, str) else None for value in written.values())
    if older is None and name is None and role is not None and role.lower() not in _ZEP_ROLES:
        return None, role  # the oldest exports have a name alone
    return older or role, name or role


def _read_metadata(row: Row, *, relation: object = None) -> Mapping[str, object]:
    unread = {name: value for name, value in row.value.items() if name not in _ZEP_READ | _NOT_KEPT}
    beside = unread | {"relation": relation}
    nested = [row.value.get(name) for name in ("metadata", "attributes")]
    own = {key: value for part in nested if isinstance(part, dict) for key, value in part.items()}
    return to_scalars(_drop_missing(beside | own))


_ZEP_FORM = RowFormat(
    ("threads", "sessions", "messages", "edges", "facts", "relevant_facts", "episodes"),
    lambda value: "fact" in value or "content" in value,
    "content or fact",
    _read_zep_fields,
)
