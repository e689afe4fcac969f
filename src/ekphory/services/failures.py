"""The two ways in which a service says no."""

from __future__ import annotations

from ekphory.errors import ServiceError


class ServiceUnavailable(ServiceError):
    """The service could not be reached, or is busy: the same request may succeed later.

    Attributes:
        retry_after: The header of that name, as the service sent it.
    """

    def __init__(self, message: str, *, retry_after: str | None = None) -> None:
        self.retry_after = retry_after
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
