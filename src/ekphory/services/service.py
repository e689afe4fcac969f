"""Which service is called, and the one wording of all errors about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ekphory.errors import InvalidInput, ServiceError
from ekphory.services.endpoint import secrets_in, shown

AuthorizationScheme = Literal["Bearer", "Token"]
CHECK_ALL = "Check the URL, the model's name and the key."
_QUOTED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A remote service.

    Attributes:
        kind: What it does, as error messages say it: `embedding service`.
        url: The endpoint.
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
            raise InvalidInput(
                "api_key",
                "***",
                "starts or ends with a blank, or holds a line break or a letter outside ASCII",
                "Give the key alone",
            )

    def describe(self) -> str:
        """Say which service this is, without credentials: kind, place and model."""
        model = "" if self.model is None else f" (model {self.model!r})"
        return f"{self.kind} at {shown(self.url)}{model}"

    def message(self, problem: str, remedy: str = CHECK_ALL) -> str:
        """Word an error: which service, where, which model, what happened, what to do."""
        return f"The {self.describe()} {problem}. {remedy}"

    def error(self, problem: str, remedy: str = CHECK_ALL) -> ServiceError:
        """Make an error of `message`."""
        return ServiceError(self.message(problem, remedy))

    def quote(self, text: str) -> str:
        """Quote the start of what the service or the network said, with no secret in it."""
        secrets = secrets_in(self.url) | ({self.api_key} if self.api_key else set())
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return repr(text[:_QUOTED])
