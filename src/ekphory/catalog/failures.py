"""What the catalog refuses."""

from __future__ import annotations

from ekphory.errors import EkphoryError


class AlreadyThere(EkphoryError):
    """Something of that name exists already."""


class NotThere(EkphoryError, LookupError):
    """Nothing of that name is there, or nothing that may be seen from here."""


class NotPermitted(EkphoryError):
    """It is there, and may not be done by whoever asks."""
