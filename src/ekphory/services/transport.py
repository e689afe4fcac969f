"""JSON over HTTP to one service: repeated while that may help, bounded, and given up in time."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import httpx

from ekphory.errors import ServiceError
from ekphory.services.breaker import CircuitBreaker
from ekphory.services.clock import SYSTEM_CLOCK, Clock
from ekphory.services.failures import ServiceRefusal, ServiceUnavailable
from ekphory.services.service import CHECK_ALL, Service
from ekphory.services.settings import DEFAULT_SERVICE_SETTINGS, ServiceSettings
from ekphory.services.waiting import seconds_before_repeat

BUSY = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed; 529 is Anthropic's for overload."""
_REMEDIES = {
    401: "Check the key.",
    403: "Check the key, and that it may use this model.",
    404: "Check the URL and the model's name.",
    413: "Send less at a time.",
    429: "Ask less often, or raise the limit of the account.",
}
_UNREACHED = "Check the URL, and that the service runs."


class JsonTransport:
    """Posts JSON to one endpoint. Safe to use from several threads."""

    def __init__(
        self,
        service: Service,
        *,
        settings: ServiceSettings = DEFAULT_SERVICE_SETTINGS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Prepare the connection; nothing is sent yet.

        Args:
            service: Which service is called.
            settings: How it is called.
            clock: What repeats, the timeout of an answer and the cool-down are timed by.
        """
        self._service = service
        self._settings = settings
        self._clock = clock
        self._breaker = CircuitBreaker(
            failures=settings.failures, cool_down=settings.cool_down, now=clock.now
        )
        self._client = self._connected()
        self._process = os.getpid()

    def post(self, body: Mapping[str, Any]) -> Any:  # noqa: ANN401  whatever JSON holds
        """Send the body as JSON; returns the answer's JSON.

        Characters that UTF-8 cannot hold are sent as `?`. Redirects are not followed: they would
        carry the key to another place.

        Raises:
            ServiceUnavailable: After all repeats the service was not reached, or was busy; or it
                failed so often that it is left alone for a while.
            ServiceRefusal: It answered a status that repeating does not change.
            ServiceError: It answered what is not JSON, or too long.
        """
        wait = self._breaker.refusal()
        if wait is not None:
            raise ServiceUnavailable(
                self._service.message(
                    "failed too often in a row and is left alone for now",
                    f"It is tried again in {wait:.1f} s. {_UNREACHED}",
                )
            )
        # JSON's text may hold surrogates; as bytes it must not
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            answer = self._repeated(content)
        except ServiceRefusal:
            self._breaker.succeeded()
            raise
        except ServiceError:
            self._breaker.failed()
            raise
        self._breaker.succeeded()
        return answer

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _own_client(self) -> httpx.Client:
        # A fork that used its parent's connections would read the parent's answers.
        if self._process != os.getpid():
            self._client = self._connected()
            self._process = os.getpid()
        return self._client

    def _connected(self) -> httpx.Client:
        return httpx.Client(timeout=self._settings.timeout, headers=_headers(self._service))

    def _repeated(self, content: bytes) -> object:
        for attempt in range(self._settings.retries):
            try:
                return self._asked(content)
            except ServiceUnavailable as failure:
                wait = seconds_before_repeat(
                    attempt, retry_after=failure.retry_after, settings=self._settings
                )
            self._clock.sleep(wait)
        return self._asked(content)

    def _asked(self, content: bytes) -> object:
        try:
            with self._own_client().stream("POST", self._service.url, content=content) as response:
                body = self._read(response)
        except httpx.HTTPError as error:
            reason = self._service.quote(str(error) or "no more is known")
            raise self._unavailable(
                f"could not be asked ({type(error).__name__}: {reason})"
            ) from error
        if not response.is_success:
            raise self._no(response, body)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            said = self._service.quote(body.decode("utf-8", "replace"))
            raise self._service.error(f"answered what is not JSON: {said}") from error

    def _read(self, response: httpx.Response) -> bytes:
        deadline = self._clock.now() + self._settings.timeout
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > self._settings.most_bytes:
                raise self._service.error(
                    f"answered more than {self._settings.most_bytes} bytes",
                    "Ask for less at a time.",
                )
            if self._clock.now() > deadline:
                raise self._unavailable(
                    f"did not finish its answer within {self._settings.timeout} s"
                )
        return bytes(body)

    def _no(self, response: httpx.Response, body: bytes) -> ServiceError:
        status = response.status_code
        said = self._service.quote(body.decode("utf-8", "replace"))
        message = self._service.message(
            f"answered status {status}: {said}", _REMEDIES.get(status, CHECK_ALL)
        )
        if status in BUSY:
            return ServiceUnavailable(message, retry_after=response.headers.get("Retry-After"))
        return ServiceRefusal(message, status=status, body=body)

    def _unavailable(self, problem: str) -> ServiceUnavailable:
        return ServiceUnavailable(self._service.message(problem, _UNREACHED))


def _headers(service: Service) -> dict[str, str]:
    headers = {"Content-Type": "application/json"}
    if service.api_key:
        headers["Authorization"] = f"{service.scheme} {service.api_key}"
    return headers
