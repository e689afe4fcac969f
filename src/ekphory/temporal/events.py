"""Events that stand for a time: "before we moved". Only the memories can say when that was."""

from __future__ import annotations

import re

from ekphory.temporal.mention import Mention, Reader, Rule, rule

CONFIDENCE = 0.1
"""Low: without the memories an event is no time, and its words are left to look for."""


def _event(match: re.Match[str], reader: Reader) -> tuple[Mention, ...]:
    del reader
    return (Mention(start=match.start(), end=match.end(), confidence=CONFIDENCE),)


RULES: tuple[Rule, ...] = (
    rule(
        "before after since until till while when",
        r"\b(?:before|after|since|until|till|while|(?<=\w )when)\s+"
        r"(?:(?:I|we|you|he|she|they|it)\s+[^\W\d_]+|(?:the|our|my|your|his|her|their)\s+"
        r"[^\W\d_]+)(?:\s+[^\W\d_]+){0,4}",
        _event,
    ),
)
