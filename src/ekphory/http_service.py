"""JSON over HTTP to a service: repeated while that may help, and bounded."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import SystemRandom
from typing import IO, Any, Literal, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx

from ekphory.errors import InvalidInput, ServiceError
from ekphory.threads import ForkSafeLock

Answer = TypeVar("Answer")

# A circuit breaker: a service that keeps failing is left alone for a while.


class CircuitBreaker:
    """Counts failures in a row, and says when to call again. Safe to use from several threads.

    After so many failures it refuses for the length of the cool-down; then it admits one trial
    and refuses again for as long, until the trial or another call has succeeded. A trial of which
    nothing is heard again therefore blocks nothing for ever.
    """

    def __init__(self, *, failures: int, cool_down: float) -> None:
        """Start closed, which is: admitting every call.

        Args:
            failures: How many in a row open it, at least 1.
            cool_down: Seconds for which it refuses.
        """
        self._most = failures
        self._cool_down = cool_down
        self._lock = ForkSafeLock()
        self._failures = 0
        self._trial_at = 0.0

    def wait(self) -> float:
        """Ask for a call: 0 admits it, else the seconds until the next trial."""
        with self._lock:
            now = time.monotonic()
            if self._failures >= self._most:
                if now < self._trial_at:
                    return self._trial_at - now
                self._trial_at = now + self._cool_down
            return 0

    def note_success(self) -> None:
        """Admit every call again."""
        with self._lock:
            self._failures = 0

    def note_failure(self) -> None:
        """Count a failure."""
        with self._lock:
            self._failures += 1
            self._trial_at = time.monotonic() + self._cool_down


# The two ways in which a service says no.


class ServiceUnavailable(ServiceError):
    """The service could not be reached, or is busy: the same request may succeed later.

    Attributes:
        retry_after: The header of that name, as the service sent it.
        status: The HTTP status; None where there was no answer.
        body: What the service said, as bytes.
        sent: Whether the request was on its way, so that the service may have acted on it.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: str | None = None,
        status: int | None = None,
        body: bytes = b"",
        sent: bool = True,
    ) -> None:
        self.retry_after = retry_after
        self.status = status
        self.body = body
        self.sent = sent
        super().__init__(message)


class ServiceRefusal(ServiceError):
    """The service works, and refuses this request: repeating it is useless.

    Attributes:
        status: The HTTP status.
        body: What the service said, as bytes.
    """

    def __init__(self, message: str, *, status: int, body: bytes) -> None:
        self.status = status
        self.body = body
        super().__init__(message)


# URLs of services: completed for calling, and stripped for showing.

_CREDENTIALS = re.compile(r"//[^/?#]*@")


def complete_url(url: str, *, prefix: str, operation: str) -> str:
    """Complete a service's URL to that of one operation.

    Args:
        url: The endpoint itself (`https://host/v1/rerank`), its base (`https://host/v1`), or the
            host alone (`https://host`). A query is kept.
        prefix: What stands between host and operation where the URL names no path: `/v1`.
        operation: `/rerank` and the like.

    Raises:
        InvalidInput: The URL is not one.
    """
    parts = urlsplit(_check_url(url))
    path = parts.path.rstrip("/")
    if not path.endswith(operation):
        path = f"{path or prefix}{operation}"
    return parts._replace(path=path, fragment="").geturl()


def shown(url: str) -> str:
    """Leave out user, password and query: they may hold a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if url else ""


def find_secrets(url: str) -> set[str]:
    """Return what of a URL is never shown: its password and the values of its query."""
    parts = urlsplit(url)
    password = parts.password or ""
    return {password, unquote(password), *(value for _, value in parse_qsl(parts.query))} - {""}


def _check_url(url: str) -> str:
    try:
        host = httpx.URL(url).host
        host.encode("idna")  # as connecting will, and would raise an error that is not ours
        parts = urlsplit(url)
        possible = parts.scheme in ("http", "https") and host != "" and parts.port != 0
    except (httpx.InvalidURL, ValueError, TypeError):  # a port out of range is a ValueError
        possible = False
    if not possible:
        shown = _CREDENTIALS.sub("//***@", str(url)).partition("?")[0]
        remedy = "Give one like http://localhost:8080."
        raise InvalidInput("url", shown, "not an http(s) URL", remedy)
    return url


# How a remote service is called.


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How a remote service is called.

    Attributes:
        timeout: Seconds that connecting, sending, and each wait for a piece of the answer may
            take, and after which an unfinished answer is given up.
        retries: How often a request is repeated after status 408, 429, 5xx or a broken connection.
        backoff: Seconds before the first repeat, doubled each time; `Retry-After` goes before it.
        longest_wait: Most seconds before a repeat, whatever the service asks for.
        most_bytes: Longest answer that is read.
        failures: Calls, each with its repeats, that may fail in a row; after them the service is
            left alone.
        cool_down: Seconds for which it is left alone.
    """

    timeout: float = 30.0
    retries: int = 3
    backoff: float = 0.5
    longest_wait: float = 30.0
    most_bytes: int = 32 * 2**20
    failures: int = 5
    cool_down: float = 30.0

    def __post_init__(self) -> None:
        for name in ("timeout", "most_bytes", "failures"):
            self._check(name, getattr(self, name) > 0, "a number above 0")
        for name in ("retries", "backoff", "longest_wait", "cool_down"):
            self._check(name, getattr(self, name) >= 0, "0 or more")

    def _check(self, name: str, is_possible: object, remedy: str) -> None:
        if not is_possible:
            problem = "no service can be called so"
            raise InvalidInput(name, getattr(self, name), problem, f"Give {remedy}")


DEFAULT_SERVICE_SETTINGS = ServiceSettings()


# How long to wait before a request is repeated.

_MOST_DOUBLINGS = 30
_chance = SystemRandom()


def compute_backoff(attempt: int, *, retry_after: str | None, settings: ServiceSettings) -> float:
    """Return the wait: what the service asks for, else one that doubles with every attempt.

    Args:
        attempt: Number of the attempt that failed, from 0.
        retry_after: The header of that name.
        settings: Names the first wait and the longest.
    """
    asked = read_retry_after(retry_after, now=datetime.now(UTC))
    if asked is not None:
        return min(asked, settings.longest_wait)
    # some jitter, so that clients refused together do not come back together
    jitter = 1 + _chance.random() / 4
    doubled = settings.backoff * float(2 ** min(attempt, _MOST_DOUBLINGS))
    return min(doubled * jitter, settings.longest_wait)


def read_retry_after(retry_after: str | None, *, now: datetime) -> float | None:
    """Read a `Retry-After` header: seconds, or a date (RFC 9110 §10.2.3); None where it is neither.

    Args:
        retry_after: The header's value.
        now: The moment it was received, with a time zone.
    """
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        return _seconds_until(retry_after, now)
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max((moment - now).total_seconds(), 0.0)
    except (ValueError, OverflowError):
        return None


def repeat(
    ask: Callable[[], Answer],
    *,
    settings: ServiceSettings,
    may_repeat: Callable[[ServiceUnavailable], bool] = lambda _: True,
) -> Answer:
    """Ask a service, and again after each failure that may pass, as often as the settings allow.

    Raises:
        ServiceError: As `ask` at the last time.
    """
    for attempt in range(settings.retries):
        try:
            return ask()
        except ServiceUnavailable as failure:
            if not may_repeat(failure):
                raise
            wait = compute_backoff(attempt, retry_after=failure.retry_after, settings=settings)
        time.sleep(wait)
    return ask()


# Which service is called, and the one wording of all errors about it.

AuthorizationScheme = Literal["Bearer", "Token"]
CHECK_ALL = "Check the URL, the model's name and the key."
_QUOTED = 200
BUSY = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed; 529 is Anthropic's for overload."""
_REMEDIES = {
    401: "Check the key.",
    403: "Check the key, and that it may use this model.",
    404: "Check the URL and the model's name.",
    413: "Send less at a time.",
    429: "Ask less often, or raise the limit of the account.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A remote service.

    Attributes:
        kind: What it does, as error messages say it: `embedding service`.
        url: The endpoint; empty where a library knows it.
        model: Name of the model that it is asked for, if any.
        api_key: Sent in the header `Authorization`; never shown.
        scheme: What stands before the key in that header.
    """

    kind: str
    url: str = field(repr=False)
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    scheme: AuthorizationScheme = "Bearer"

    def __post_init__(self) -> None:
        key = self.api_key or ""
        if not (key.isascii() and key.isprintable() and key == key.strip()):
            problem = "starts or ends with a blank, or holds a line break or a letter outside ASCII"
            raise InvalidInput("api_key", "***", problem, "Give the key alone")

    def describe(self) -> str:
        """Say which service this is, without credentials: kind, place and model."""
        place = f" at {shown(self.url)}" if self.url else ""
        model = "" if self.model is None else f" (model {self.model!r})"
        return f"{self.kind}{place}{model}"

    def message(self, problem: str, remedy: str = CHECK_ALL) -> str:
        """Word an error: which service, where, which model, what happened, what to do."""
        return f"The {self.describe()} {problem}. {remedy}"

    def error(self, problem: str, remedy: str = CHECK_ALL) -> ServiceError:
        """Make an error of `message`."""
        return ServiceError(self.message(problem, remedy))

    def refusal(
        self,
        status: int,
        said: str,
        *,
        body: bytes,
        remedy: str | None = None,
        retry_after: str | None = None,
    ) -> ServiceUnavailable | ServiceRefusal:
        """Make the error of an answer that tells of a failure.

        Args:
            status: HTTP's.
            said: What the service said.
            body: The same as bytes, for whoever reads it.
            remedy: What to do; None where the status says it.
            retry_after: The header of that name.
        """
        problem = f"answered status {status}: {self.quote(said)}"
        message = self.message(problem, remedy or _REMEDIES.get(status, CHECK_ALL))
        if status in BUSY:
            return ServiceUnavailable(message, retry_after=retry_after, status=status, body=body)
        return ServiceRefusal(message, status=status, body=body)

    def quote(self, text: str) -> str:
        """Quote the start of what the service or the network said, with no secret in it."""
        secrets = find_secrets(self.url) | ({self.api_key} if self.api_key else set())
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return repr(text[:_QUOTED])


# JSON over HTTP to one service: repeated while that may help, bounded, and given up in time.


def as_json(body: Mapping[str, Any]) -> bytes:
    """Return a request's fields as they are sent; characters that UTF-8 cannot hold are `?`."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One of several things that a service does, and how it is asked for it.

    Attributes:
        path: What comes after the service's URL.
        seconds: As `ServiceSettings.timeout`; None takes that one.
        may_repeat: Whether the same request is sent again after a failure that may pass.
        into: What a successful answer is written to, of any length, in place of being read.
        method: HTTP's.
    """

    path: str = ""
    seconds: float | None = None
    may_repeat: Callable[[ServiceUnavailable], bool] = lambda _: True
    into: IO[bytes] | None = None
    method: Literal["POST", "GET"] = "POST"


_WHOLE_SERVICE = Operation()

_UNREACHED = "Check the URL, and that the service runs."
_CONNECTIONS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=4.0)
"""Idle ones are given up before a service does, after five seconds in uvicorn: what is sent at that
moment is lost, and nobody knows whether it was."""
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""What fails before anything is sent."""


class JsonTransport:
    """Asks one endpoint for JSON. Safe to use from several threads."""

    def __init__(
        self, service: Service, *, settings: ServiceSettings = DEFAULT_SERVICE_SETTINGS
    ) -> None:
        """Prepare the connection; nothing is sent yet.

        Args:
            service: Which service is called.
            settings: How it is called.
        """
        self._service = service
        self._settings = settings
        self._breaker = CircuitBreaker(failures=settings.failures, cool_down=settings.cool_down)
        self._client = self._connect()
        self._process = os.getpid()

    def post(self, body: Mapping[str, Any], operation: Operation = _WHOLE_SERVICE) -> Any:  # noqa: ANN401  whatever JSON holds
        """Send the body as JSON; returns the answer's JSON, or its headers where it is written.

        Redirects are not followed: they would carry the key to another place.

        Raises:
            ServiceUnavailable: After all repeats the service was not reached, or was busy; or it
                failed so often that it is left alone for a while.
            ServiceRefusal: It answered a status that repeating does not change.
            ServiceError: It answered what is not JSON, or too long.
        """
        wait = self._breaker.wait()
        if wait > 0:
            problem = "failed too often in a row and is left alone for now. It is tried again in"
            raise self._unavailable(f"{problem} {wait:.1f} s", sent=False)
        try:
            content = as_json(body)
            answer = repeat(
                lambda: self._ask(content, operation),
                settings=self._settings,
                may_repeat=operation.may_repeat,
            )
        except ServiceRefusal:
            self._breaker.note_success()
            raise
        except ServiceError:
            self._breaker.note_failure()
            raise
        self._breaker.note_success()
        return answer

    def get(self) -> Any:  # noqa: ANN401  whatever JSON holds
        """Ask without a body, and only once; otherwise as `post`."""
        return self._ask(b"", Operation(method="GET"))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _own_client(self) -> httpx.Client:
        # A fork that used its parent's connections would read the parent's answers.
        if self._process != os.getpid():
            self._client = self._connect()
            self._process = os.getpid()
        return self._client

    def _connect(self) -> httpx.Client:
        headers = {"Content-Type": "application/json"}
        if self._service.api_key:
            headers["Authorization"] = f"{self._service.scheme} {self._service.api_key}"
        return httpx.Client(timeout=self._settings.timeout, headers=headers, limits=_CONNECTIONS)

    def _ask(self, content: bytes, operation: Operation) -> object:
        url = self._service.url + operation.path
        seconds = operation.seconds or self._settings.timeout
        client, method = self._own_client(), operation.method
        asking = client.stream(method, url, content=content, timeout=seconds)
        try:
            with asking as response:
                body = self._read(response, seconds, operation.into)
        except httpx.HTTPError as error:
            reason = self._service.quote(str(error) or "no more is known")
            problem = f"could not be asked ({type(error).__name__}: {reason})"
            raise self._unavailable(problem, sent=not isinstance(error, _UNSENT)) from error
        if not response.is_success:
            raise self._refuse(response, body)
        if operation.into is not None:
            return response.headers
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            said = self._service.quote(body.decode("utf-8", "replace"))
            raise self._service.error(f"answered what is not JSON: {said}") from error

    def _read(self, response: httpx.Response, seconds: float, into: IO[bytes] | None) -> bytes:
        if into is not None and response.is_success:
            into.writelines(response.iter_bytes())
            return b""
        deadline = time.monotonic() + seconds
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > self._settings.most_bytes:
                problem = f"answered more than {self._settings.most_bytes} bytes"
                raise self._service.error(problem, "Ask for less at a time.")
            if time.monotonic() > deadline:
                raise self._unavailable(f"did not finish its answer within {seconds} s")
        return bytes(body)

    def _refuse(self, response: httpx.Response, body: bytes) -> ServiceError:
        return self._service.refusal(
            response.status_code,
            body.decode("utf-8", "replace"),
            body=body,
            retry_after=response.headers.get("Retry-After"),
        )

    def _unavailable(self, problem: str, *, sent: bool = True) -> ServiceUnavailable:
        return ServiceUnavailable(self._service.message(problem, _UNREACHED), sent=sent)
