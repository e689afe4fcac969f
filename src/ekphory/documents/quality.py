"""Which passages answer no question, and why.

Memory-Spark scores passages and drops those below .3, which also drops every text that is not in
Latin letters. Here a passage is left out for a reason that can be named, whatever its script.
"""

from __future__ import annotations

import re

from ekphory.documents.page_numbers import is_page_number
from ekphory.documents.passages import Passage
from ekphory.documents.tokens import DENSE

_WORD = re.compile(rf"[{DENSE}]|(?:(?![{DENSE}])\w)+")
_LETTERS_A_WORD = 8
"""Thai, Khmer and others write no blanks: a longer run counts as several words."""
_FEWEST_WORDS = 2
_LEAST_MEANING = 0.3
"""Least share of letters and digits among the characters that are not blank."""
_LEADER = re.compile(r".*?(?:\.\s?){4,}\s*\d{1,5}\s*")
_LONGEST_BOILERPLATE = 400
_BOILERPLATE = re.compile(
    r"all rights reserved|alle rechte vorbehalten|tous droits réservés"
    r"|this page (?:is )?intentionally left blank|diese seite .{0,20}absichtlich leer"
    r"|(?:we|this (?:web)?site) uses? cookies"
    r"|(?:wir|diese (?:web)?seite) (?:verwende[nt]|nutz(?:en|t)) cookies"
    r"|(?:accept|allow) all cookies|alle cookies (?:akzeptieren|zulassen)"
    r"|skip to (?:main )?content|zum (?:haupt)?inhalt springen"
    r"|javascript (?:is disabled|must be enabled)|please enable javascript",
    re.IGNORECASE,
)
_LONG_RUN = re.compile(r"\S{200,}")


def reason_to_leave_out(passage: Passage) -> str | None:
    """Give the reason why a passage is worth no memory; None for one that is kept.

    Two words are enough, the heading's counted: `Wifi: hunter2` is a fact.
    """
    if passage.kinds == {"heading"}:
        return "heading alone"
    text = passage.text
    if is_page_number(text):
        return "page number"
    if _words(text) < _FEWEST_WORDS:
        return "near-empty"
    may_be_boilerplate = len(text) <= _LONGEST_BOILERPLATE and "heading" not in passage.kinds
    if may_be_boilerplate and _BOILERPLATE.search(text):
        return "boilerplate"
    if "code" not in passage.kinds and (reason := _reason_of_form(text)):
        return reason
    return "encoded data" if _is_encoded(text) else None


def _words(text: str) -> int:
    """Count words, as far as it matters."""
    count = 0
    for found in _WORD.finditer(text):
        count += 1 + len(found[0]) // _LETTERS_A_WORD
        if count >= _FEWEST_WORDS:
            break
    return count


def _reason_of_form(text: str) -> str | None:
    lines = [line for line in text.split("\n") if line.strip()]
    leaders = sum(_LEADER.fullmatch(line[:500]) is not None for line in lines)
    if len(lines) > 2 and leaders * 2 > len(lines):
        return "table of contents"
    signs = sum(not sign.isspace() for sign in text)
    meaning = sum(sign.isalnum() for sign in text)
    return "mostly punctuation" if meaning < _LEAST_MEANING * signs else None


def _is_encoded(text: str) -> bool:
    """Whether most of it is runs without blanks, as base64 is; ideograms have none either."""
    runs = [run for run in _LONG_RUN.findall(text) if run.isascii()]
    return sum(len(run) for run in runs) * 2 > len(text)
