"""Payloads of a provider in the debugging log, without secrets; off unless it is wanted."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_log = logging.getLogger("ekphory.agent.raw")
_LONGEST = 20_000
_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class RawOutput:
    """Tells payloads, and words of a service, without its key.

    Attributes:
        wanted: Whether payloads are told at all.
        secret: The key.
    """

    wanted: bool
    secret: str | None = field(default=None, repr=False)

    def tell(self, what: str, payload: Mapping[str, Any]) -> None:
        """Write a payload to the log."""
        if self.wanted and _log.isEnabledFor(logging.DEBUG):
            text = self.without_secret(json.dumps(payload, default=str))
            _log.debug("%s: %s", what, text[:_LONGEST])

    def quoted(self, error: BaseException) -> str:
        """Give what an error says, shortened."""
        return self.without_secret(str(error) or type(error).__name__)[:_LONGEST_MESSAGE]

    def without_secret(self, text: str) -> str:
        """Replace the key."""
        return text.replace(self.secret, "***") if self.secret else text
