"""What the catalog refuses."""

from __future__ import annotations

from recollect.errors import RecollectError


class AlreadyThere(RecollectError):
    """Something of that name exists already."""


class NotThere(RecollectError, LookupError):
    """Nothing of that name is there, or nothing that may be seen from here."""


class NotPermitted(RecollectError):
    """It is there, and may not be done by whoever asks."""
