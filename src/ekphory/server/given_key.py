"""The key that whoever starts the server gives to it, as containers do; kept as a digest alone."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from ekphory.errors import InvalidInput

VARIABLE = "EKPHORY_SERVE_KEY"
_SHORTEST = 32


@dataclass(frozen=True, slots=True)
class GivenKey:
    """A key with all rights to every project, for as long as the server runs with it."""

    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, text: str) -> GivenKey:
        """Make it from the text that callers will send.

        Raises:
            InvalidInput: It could be guessed, or no header could carry it.
        """
        if len(text) < _SHORTEST or not text.isascii() or not text.isprintable() or " " in text:
            raise InvalidInput(
                VARIABLE,
                f"({len(text)} characters)",
                f"a key has {_SHORTEST} or more visible ASCII characters",
                "Make one with `openssl rand -hex 32`",
            )
        return cls(hashlib.sha256(text.encode()).digest())

    def is_same(self, text: str) -> bool:
        """Whether a caller sent this key; takes the same time whatever was sent."""
        return hmac.compare_digest(hashlib.sha256(text.encode()).digest(), self.digest)
