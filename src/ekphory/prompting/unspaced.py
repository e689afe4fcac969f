"""Scripts that are written without spaces between words."""

from __future__ import annotations

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # kana, Han
    "\uac00-\ud7af"  # Hangul, whose endings cling to the word
)
"""For a character class of a regular expression; a change needs a new `TERMS_VERSION`."""
