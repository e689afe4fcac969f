"""The verbs of `Memory` over a server: how each is asked, how often, and what comes back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, get_type_hints
from urllib.parse import urlsplit

from ekphory import errors, http_service
from ekphory.agent.provider import AgentOptions, check_options
from ekphory.config import PREFIX
from ekphory.errors import EkphoryError, InvalidInput
from ekphory.filters.grammar import format_filter, parse_filter
from ekphory.filters.tree import Filter, check_filter
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import PRESETS
from ekphory.scope import Scope
from ekphory.search import SearchResult
from ekphory.transfer import ExportReport, fill_file
from ekphory.types import Failure, WriteReport, check_records, find_zone, from_plain_data

VERBS_PATH = "/api/v1/memory/"
"""What comes before a verb in a server's paths."""
EXPORT_REPORT = "X-Export-Report"
"""The header with the report of an export, whose body is the export itself."""
_SETTINGS = http_service.ServiceSettings(
    timeout=60.0, retries=2, backoff=0.2, most_bytes=2**28, cool_down=1.0
)
_LONG_SECONDS = 600.0
_LONG = frozenset({"conflicts", "export", "forget", "repair", "verify"})
"""Verbs that may go through all memories."""
_REPEATABLE = frozenset(
    ("search", "get", "list", "count", "history", "revisions", "conflicts", "timeline", "profile")
) | {"related", "gate_status", "repeated_mistakes", "settle", "health", "verify"}
"""Verbs that do the same when they are asked twice."""
_BATCH_RECORDS = 256
_BATCH_BYTES = 256 * 1024
_REMEDIES = {
    401: f"Give a key that is in use as `api_key`, or in {PREFIX}API_KEY.",
    403: "Use a key that reaches this organisation and project, and may do this.",
    404: "Check the URL, and that an ekphory of this version serves there.",
    413: "Send less at a time, or raise the limits of the server.",
}
_UNKNOWN_OUTCOME = "Whether it was done is not known: look before doing it again."
_KINDS: Mapping[str, type[EkphoryError]] = {
    kind.__name__: kind
    for kind in (
        *(errors.InvalidInput, errors.FilterError, errors.ScopeError, errors.MemoryNotFound),
        *(errors.StoreError, errors.EmbedderMismatch, errors.SchemaTooNew, errors.StoreLocked),
        *(errors.StoreClosed, errors.ModelError),
    )
}
"""Errors of a server that are raised as what they are there, by their names."""
_OUT_OF_ORDER = 503
"""Of errors that a caller cannot help; others name a field, a value and a remedy."""


class RemoteMemory:
    """What a handle on a server asks; safe to use from several threads.

    Attributes:
        url: The server's address.
    """

    def __init__(
        self, url: str, *, api_key: str | None, scope: Scope, preset: str | Pipeline | None
    ) -> None:
        """Prepare the connection; nothing is sent yet.

        Args:
            url: The server's address, without a verb.
            api_key: A key of the server's; None where it needs none.
            scope: What is read and written; the key may bind it further.
            preset: The pipeline of searches that name none; None leaves it to the server.

        Raises:
            InvalidInput: The URL cannot be asked, or a pipeline of one's own is given.
        """
        parts = urlsplit(url)
        if "@" in parts.netloc or parts.query:
            remedy = "Give the server's address alone, and a key as `api_key`"
            raise InvalidInput("path", http_service.shown(url), "holds a key or a query", remedy)
        self.url = http_service.complete_url(url, prefix="", operation="")
        self._scope = {name: value for name, value in asdict(scope).items() if value is not None}
        self._preset = None if preset is None else _to_json("preset", preset)
        self._service = http_service.Service(kind="memory server", url=self.url, api_key=api_key)
        self._transport = http_service.JsonTransport(self._service, settings=_SETTINGS)

    def ask(self, verb: Callable[..., Any], given: dict[str, Any]) -> Any:  # noqa: ANN401  what the verb returns
        """Let the server do what a verb of `Memory` does, and return what it returns.

        Args:
            verb: The verb; its name is asked for, and its annotation says what comes back.
            given: The arguments, by their names.

        Raises:
            InvalidInput: An argument cannot be sent, or the server refuses it.
            EkphoryError: Whatever else the verb raises.
            ServiceError: The server was not reached, refuses the key, or answers nonsense.
        """
        match verb.__name__:
            case "add_many" | "add_exported":
                return self._add_batches(verb, **given)
            case "export":
                return self._export(**given)
            case "settle":
                return self._settle(verb, **given)
            case "search":
                return self._search(verb, **given)
            case "gate_status":
                given["preset"] = given.get("preset") or self._preset
        # A server tells nothing before it has done all.
        given.pop("on_progress", None)
        return self._call(verb, given)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _search(
        self,
        verb: Callable[..., Any],
        *,
        preset: str | Pipeline | None = None,
        agent_options: AgentOptions | None = None,
        **given: Any,  # noqa: ANN401  what the verb takes
    ) -> SearchResult:
        options = check_options(agent_options)
        if options.settings is not None:
            problem = "a server's agent has the settings of its own configuration"
            raise InvalidInput("agent_options", "settings", problem, "Leave them out")
        chosen = self._preset if preset is None else preset
        result: SearchResult = self._call(verb, {**given, "preset": chosen})
        trace = result.retrieval_trace
        if trace is None:
            return result
        if options.on_event is not None:
            for event in trace.events:
                options.on_event(event)
        trace = replace(trace, stage_results_wanted=options.stage_results)
        return replace(result, retrieval_trace=trace)

    def _settle(self, verb: Callable[..., Any], timeout: float | None = None) -> None:
        # A request waits for a while only: it keeps a thread of the server.
        started, left = time.monotonic(), timeout
        while not self._call(verb, {"timeout": left}):
            if timeout is not None:
                left = timeout - (time.monotonic() - started)
                if left <= 0:
                    raise TimeoutError(f"not settled within {timeout} s; the work goes on")

    def _export(
        self, target: str | Path | IO[bytes], on_progress: Callable[[int, int], None] | None = None
    ) -> ExportReport:
        def fill(stream: IO[bytes]) -> ExportReport:
            answer = self._send("export", {}, into=stream)
            if isinstance(answer, dict):  # of a project that is not there
                stream.write(str(answer.get("lines", "")).encode())
                found = answer["result"]
            else:
                found = json.loads(answer.get(EXPORT_REPORT, "null"))
            report: ExportReport = self._read(ExportReport, found)
            return report

        report = fill_file(Path(target), fill) if isinstance(target, str | Path) else fill(target)
        if on_progress is not None:
            on_progress(report.memories, report.memories)
        return report

    def _add_batches(
        self,
        verb: Callable[..., Any],
        records: Iterable[Mapping[str, Any]],
        on_progress: Callable[[WriteReport], None] | None = None,
        **given: Any,  # noqa: ANN401  what the verb takes
    ) -> WriteReport:
        failed: list[Failure] = []
        total = WriteReport(0, 0, failed)
        for batch in _cut_batches(records, failed):
            found = self._call(verb, {**given, "records": [record for _, record in batch]})
            failed += [replace(each, index=batch[each.index][0]) for each in found.failed]
            added, skipped = total.added + found.added, total.skipped + found.skipped
            ids, sampled = total.ids + found.ids, total.sampled + found.sampled
            total = WriteReport(added, skipped, failed, ids, sampled)
            if on_progress is not None:
                on_progress(replace(total, failed=list(failed)))
        failed.sort(key=lambda each: each.index)
        return total

    def _call(self, verb: Callable[..., Any], given: Mapping[str, Any]) -> Any:  # noqa: ANN401  what the verb returns
        sent = {name: _to_json(name, value) for name, value in given.items()}
        answer = self._send(verb.__name__, sent)
        if not isinstance(answer, dict) or "result" not in answer:
            raise self._service.error("answered without a result", _REMEDIES[404])
        return self._read(_find_hint(verb), answer["result"])

    def _read(self, hint: Any, found: object) -> Any:  # noqa: ANN401  any type, and a value of it
        try:
            return from_plain_data(hint, found)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._service.error(
                f"answered what this ekphory does not know ({type(error).__name__})",
                "Use the same version here and there.",
            ) from error

    def _send(self, name: str, given: Mapping[str, Any], *, into: IO[bytes] | None = None) -> Any:  # noqa: ANN401  what the server answers
        repeatable = name in _REPEATABLE or _has_ids(name, given)
        operation = http_service.Operation(
            path=VERBS_PATH + name,
            seconds=_LONG_SECONDS if name in _LONG or given.get("agent_mode") else None,
            may_repeat=lambda failure: repeatable or not _may_have_acted(failure),
            into=into,
        )
        try:
            return self._transport.post({"scope": self._scope, "arguments": given}, operation)
        except (http_service.ServiceRefusal, http_service.ServiceUnavailable) as failure:
            # In a project that is not there is nothing, as in this process.
            if "result" in (answer := _read_body(failure.body)):
                return answer
            raise self._translate(failure, repeatable=repeatable) from None

    def _translate(
        self,
        failure: http_service.ServiceRefusal | http_service.ServiceUnavailable,
        *,
        repeatable: bool,
    ) -> EkphoryError:
        """Return what the server raised; else the failure, with what to do about it."""
        detail = _read_detail(failure.body)
        kind = _KINDS.get(str(detail.get("exception")))
        told = detail.get("fields")
        if kind is not None and (told or failure.status == _OUT_OF_ORDER):
            error = kind.__new__(kind, str(detail.get("message")))
            vars(error).update(told or {})
            return error
        if failure.status is None:
            message = str(failure)
        else:
            said = str(detail.get("message") or failure.body.decode("utf-8", "replace"))
            problem = f"answered status {failure.status}: {self._service.quote(said)}"
            remedy = _REMEDIES.get(failure.status, "Try again later, or ask who runs it.")
            message = self._service.message(problem, remedy)
        if isinstance(failure, http_service.ServiceRefusal):
            return http_service.ServiceRefusal(message, status=failure.status, body=failure.body)
        if not repeatable and _may_have_acted(failure):
            message = f"{message} {_UNKNOWN_OUTCOME}"
        return http_service.ServiceUnavailable(message, status=failure.status, body=failure.body)


@lru_cache
def _find_hint(verb: Callable[..., Any]) -> object:
    """Return the type of what a verb returns."""
    return get_type_hints(verb)["return"]


def _has_ids(name: str, given: Mapping[str, Any]) -> bool:
    """Return whether a write names its memories, so that a second one adds nothing."""
    if name == "add":
        return given.get("id") is not None
    records = given.get("records", ()) if name in ("add_many", "add_exported") else ()
    named = [isinstance(each, dict) and each.get("id") is not None for each in records]
    return bool(named) and all(named)


def _may_have_acted(failure: http_service.ServiceUnavailable) -> bool:
    """Return whether a server may have done what it was asked, in part or whole."""
    refused = failure.status in (408, 429) or (
        _read_detail(failure.body).get("exception") == "Overloaded"
    )
    return failure.sent and not refused


def _read_body(body: bytes) -> dict[str, Any]:
    """Return what a server answers beside an error's status; nothing where it is none of ours."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _read_detail(body: bytes) -> dict[str, Any]:
    """Return what a server says of an error."""
    detail = _read_body(body).get("detail", {})
    return detail if isinstance(detail, dict) else {"message": detail}


# Arguments as JSON has them.


def _cut_batches(
    records: Iterable[Mapping[str, Any]], failed: list[Failure]
) -> Iterator[list[tuple[int, Any]]]:
    """Yield records with their places, as many as one request takes; add those it cannot take."""
    check_records(records)
    batch: list[tuple[int, Any]] = []
    size = 0
    for place, record in enumerate(records):
        try:
            sent = _to_json("", record)
        except InvalidInput as error:
            failed.append(Failure(place, None, error.field, str(error)))
            continue
        length = len(json.dumps(sent))
        if batch and (len(batch) == _BATCH_RECORDS or size + length > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((place, sent))
        size += length
    if batch:
        yield batch


def _to_json(field: str, value: Any) -> Any:  # noqa: ANN401  whatever a verb takes
    """Return an argument as JSON has it.

    Raises:
        InvalidInput: JSON has nothing like it.
    """
    if isinstance(value, str) and value.encode(errors="ignore").decode() != value:
        problem = "holds half of a surrogate pair, which UTF-8 cannot carry"
        raise InvalidInput(field or "record", value, problem, "Remove it")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        inside = f"{field}." if field else ""
        return {_to_json(field, key): _to_json(inside + key, value[key]) for key in value}
    if isinstance(value, set | frozenset | Sequence) and not isinstance(value, bytes | bytearray):
        return [_to_json(field, entry) for entry in value]
    return _spell(field, value)


def _spell(field: str, value: object) -> str:
    """Return the text that stands for an object where a verb takes either."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tzinfo) and find_zone(str(value)) == value:
        return str(value)
    if isinstance(value, Pipeline) and PRESETS.get(value.name) is value:
        return value.name
    if isinstance(value, Filter):
        text = format_filter(value)
        if parse_filter(text) == check_filter(value):
            return text
    remedy = "Give what has a text form or a name, such as '2026-11-20', 'UTC' or 'balanced'"
    raise InvalidInput(field or "record", value, "cannot be sent to a server", remedy)
