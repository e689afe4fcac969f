"""Page numbers: lines that say where a page is, not what is on it."""

from __future__ import annotations

import re

_NUMBER = re.compile(
    r"(?:(?:page|seite|pagina|página|стр|pág|pag|p|s)\.?\s?)?[-–—\s]{0,5}\d{1,5}"
    r"(?:\s?(?:of|von|de|di|sur|из|/)\s?\d{1,5})?[-–—\s]{0,5}",
    re.IGNORECASE,
)


def is_page_number(line: str) -> bool:
    """Whether a line is a page number alone: `7`, `- 7 -`, `Page 7 of 12`."""
    return _NUMBER.fullmatch(line.strip()) is not None
