"""Whether a stored text tries to steer the model that will read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ekphory.prompting.chat_markers import opens_a_turn
from ekphory.prompting.disguises import (
    decoded_parts,
    reversed_text,
    rotated,
    tagged,
    unescaped,
    visible,
)
from ekphory.prompting.steering_rules import rule_book

CHAT_MARKER = "chat marker"
"""Name of the rule that finds marks of chat templates."""
_DEEPEST = 2
"""How often encodings may be nested."""


@dataclass(frozen=True, slots=True)
class InjectionVerdict:
    """What was found in one text.

    Attributes:
        rule: Name of the rule that the text matches; None where it matches none.
        reading: How the text had to be read for that: `as written` (escapes and look-alikes
            undone), `tag characters`, `base64`, `hex`, `rot13` or `reversed`; else empty.
    """

    rule: str | None
    reading: str

    @property
    def is_injection(self) -> bool:
        """Whether any rule matches."""
        return self.rule is not None


HARMLESS = InjectionVerdict(None, "")


def find_injection(text: str) -> InjectionVerdict:
    """Decide whether a text tries to steer a model, by the rules of `steering_rules.toml`.

    The rules know English, and in part German, French, Spanish, Italian, Portuguese, Dutch,
    Russian, Chinese, Japanese and Korean. They find orders to a model, not lies: a text that
    steers by false facts passes. Takes time in proportion to the length of the text.
    """
    for reading, plain in _readings(text):
        rule = CHAT_MARKER if opens_a_turn(plain) else rule_book().first_match(plain)
        if rule is not None:
            return InjectionVerdict(rule, reading)
    return HARMLESS


def _readings(text: str) -> Iterator[tuple[str, str]]:
    written = unescaped(text)
    plain = visible(written)
    yield "as written", plain
    if spelled := tagged(written):
        yield "tag characters", spelled
    yield from _decoded(plain, depth=1)
    for reading, turned in (("rot13", rotated(plain)), ("reversed", reversed_text(plain))):
        # Most texts turned round hold no word at all, and are not read further.
        if rule_book().vocabulary.recognises(turned):
            yield reading, turned


def _decoded(text: str, *, depth: int) -> Iterator[tuple[str, str]]:
    parts = [(name, visible(unescaped(part))) for name, part in decoded_parts(text)]
    yield from parts
    if depth < _DEEPEST:
        for _, part in parts:
            yield from _decoded(part, depth=depth + 1)
