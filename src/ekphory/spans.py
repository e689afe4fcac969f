"""Spans for OpenTelemetry: what searches, writes, upkeep and requests did, beside those of others.

Spans are made where the program has given OpenTelemetry (extra `[otel]`) a tracer provider, as one
does that exports them; elsewhere nothing is imported and nothing measured. Attributes are names,
counts and durations: no text of a memory or a query is among them, and of an error its type alone.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ekphory import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

Attribute = str | int | float | bool


class TraceSpan:
    """One span, current within its block; spans that begin there lie inside of it.

    Args:
        name: What is done.
        sender: Header `traceparent` of the request that is answered, which may be empty; None for
            what does not answer a request.
        attributes: What is known before it is done. Names without a dot begin with `ekphory.`.
    """

    def __init__(self, name: str, *, sender: str | None = None, **attributes: Attribute) -> None:
        self._name = name
        self._sender = sender
        self._attributes = attributes
        self._block: AbstractContextManager[Span] | None = None
        self._span: Span | None = None

    def __enter__(self) -> Self:
        if _is_traced():
            self._block = _open_block(self._name, self._sender)
            self._span = self._block.__enter__()
            self.note(**self._attributes)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        places: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.fail(kind.__name__)
        if self._block is not None:
            self._block.__exit__(kind, error, places)

    def note(self, **attributes: Attribute) -> None:
        """Add what is known by now."""
        if self._span is not None:
            for name, value in attributes.items():
                self._span.set_attribute(name if "." in name else f"ekphory.{name}", value)

    def fail(self, kind: str) -> None:
        """Say that it failed, by an error of this type."""
        if self._span is not None:
            from opentelemetry.trace import Status, StatusCode

            self._span.set_status(Status(StatusCode.ERROR, kind))


def _is_traced() -> bool:
    if "opentelemetry.trace" not in sys.modules:
        return False
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    # Libraries import OpenTelemetry too; only a program gives it somebody to tell.
    return not isinstance(get_tracer_provider(), ProxyTracerProvider)


def _open_block(name: str, sender: str | None) -> AbstractContextManager[Span]:
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    # Without a sender it lies in whatever span is current.
    carrier = {"traceparent": sender}
    return _tracer().start_as_current_span(
        f"ekphory.{name}",
        context=TraceContextTextMapPropagator().extract(carrier) if sender else None,
        kind=SpanKind.INTERNAL if sender is None else SpanKind.SERVER,
        # The message of an error may quote a query.
        record_exception=False,
        set_status_on_exception=False,
    )


@cache
def _tracer() -> Tracer:
    from opentelemetry.trace import get_tracer

    return get_tracer("ekphory", __version__)
