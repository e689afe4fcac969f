"""Characters that look like Latin letters, and those that do not show at all.

The pairs are those of Unicode's confusables list (UTS 39) between Latin and the scripts that are
used to pass for it; compatibility characters (full-width, bold, circled, …) are left to NFKC.
"""

from __future__ import annotations

import re

_LOOKALIKES = {
    # Cyrillic
    "АВЕКМНОРСТУХІЈЅ": "ABEKMHOPCTYXIJS",
    "авекмнорстухіјѕԁԛԝһӏѵ": "abekmhopctyxijsdqwhlv",
    # Greek
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ": "ABEZHIKMNOPTYX",
    "αβγεηικμνορσςτυχω": "abyenikuvopocтuxw".replace("т", "t"),
    # Armenian, IPA, small capitals and strokes
    "օսհոցզ": "ouhngq",
    "ɑɡıȷɩʋøłđħ": "agijivoldh",
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ": "abcdefghijklmnoprstuvwyz",
}
_LETTER_RANGES = (0x1F150, 0x1F170, 0x1F1E6)
"""Where A begins: negative circled, negative squared and regional indicator letters."""

LOOKALIKES = {
    ord(character): letter
    for characters, letters in _LOOKALIKES.items()
    for character, letter in zip(characters, letters, strict=True)
} | {
    start + place: letter
    for start in _LETTER_RANGES
    for place, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
"""For `str.translate`: look-alike to Latin letter."""

TAG_CHARACTERS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
"""For `str.translate`: invisible tag characters to the ASCII that they spell."""

INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
"""Control characters, and what Unicode calls default-ignorable."""

ACCENTS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
"""Marks that combine with the letter before; many on one letter hide it."""
