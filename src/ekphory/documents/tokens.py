"""How many tokens a text has, about, without a tokenizer."""

from __future__ import annotations

import re

CHARACTERS_A_TOKEN = 4
"""Of alphabetic scripts; an ideogram, kana or Hangul syllable is a token of its own."""
DENSE = (
    r"\u2e80-\u303f\u3040-\u30ff\u3100-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
"""Chinese, Japanese and Korean letters and signs, as the inside of a character class."""
_DENSE_SIGN = re.compile(f"[{DENSE}]")
_DENSE_RUN = re.compile(f"[{DENSE}]+")


def estimated_tokens(text: str) -> float:
    """Estimate the number of tokens: four characters each, one for a dense sign."""
    if text.isascii():
        return len(text) / CHARACTERS_A_TOKEN
    dense = sum(len(run) for run in _DENSE_RUN.findall(text))
    return dense + (len(text) - dense) / CHARACTERS_A_TOKEN


def is_dense(sign: str) -> bool:
    """Whether a character belongs to a script that is written without blanks between words."""
    return _DENSE_SIGN.fullmatch(sign) is not None
