"""How features are learnt from episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ekphory.errors import InvalidInput

Learnt = Literal["off", "categories", "profile"]
"""Nothing; the categories that callers have added; a profile of each user as well."""
_ALL: Learnt = "profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionSettings:
    """How features are learnt from episodes.

    Attributes:
        learnt: What is learnt.
        attempts: How often an episode may fail before it is given up.
        backoff: Seconds before it is tried again, doubled each time.
        longest_wait: Most seconds before it is tried again.
        poll: Seconds after which the queue is looked at, though nobody has said that it grew:
            another process may have added to it.
        group: So many features under one tag are put in order: what says the same is merged.
        stop: Most seconds that closing waits for a question that is being answered; what is not
            finished by then is done again after the next start.
    """

    learnt: Learnt = _ALL
    attempts: int = 5
    backoff: float = 2.0
    longest_wait: float = 300.0
    poll: float = 1.0
    group: int = 20
    stop: float = 5.0

    def wait(self, failures: int) -> float:
        """Give the seconds to wait after so many failures in a row."""
        return min(self.backoff * float(2 ** min(failures - 1, 30)), self.longest_wait)


def read_learnt(text: str | None) -> Learnt:
    """Read the setting `EKPHORY_EXTRACTION`; None means all of it.

    Raises:
        InvalidInput: It is none of them.
    """
    for known in get_args(Learnt):
        if text == known:
            found: Learnt = known
            return found
    if text is not None:
        raise InvalidInput(
            "extraction", text, "cannot be learnt", f"Give {', '.join(get_args(Learnt))}"
        )
    return _ALL
