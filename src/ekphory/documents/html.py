"""HTML: the main part of a page as headings, paragraphs, lists, tables and code."""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.documents.blocks import Block, BlockKind, NoteFacts, Read, SkippedPart, from_docs_extra
from ekphory.documents.notes import read_date
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.text import decode, read_bytes

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_SILENT = frozenset(
    "script style noscript template svg math iframe object canvas audio video head title "
    "input button select textarea option".split()
)
_NAVIGATION = frozenset(("nav", "footer"))
_NAVIGATION_ROLES = frozenset(("navigation", "banner", "contentinfo", "search", "menu", "menubar"))
_BLOCKS = frozenset(
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure "
    "form header hgroup hr html legend li main p section summary tbody td tfoot th thead tr".split()
)
_DATES = ("article:published_time", "date", "dcterms.created", "dc.date")
"""Names of `meta` elements that tell when a page was published; the first one counts."""
_LISTS = ("ul", "ol", "menu", "dir")
_FRAMED = ("h1", "h2", "h3", "table", "pre")
_LEAST_SHARE = 0.5
_FEWEST_LINKS = 3
_LINK_SHARE = 0.8
_LONGEST_LINK = 40
_DECLARED = re.compile(
    rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})"
)
_SEARCHED_BYTES = 4096
# What pages mean by these names, by the WHATWG Encoding Standard.
_MEANT = {"iso8859-1": "cp1252", "ascii": "cp1252", "utf-16-le": "utf-8", "utf-16-be": "utf-8"}
_BLANKS = re.compile(r"[ \t\n\r\f\v\u00a0]+")


def read_html(path: Path, settings: ReadingSettings) -> Iterator[Read]:
    """Read a page: its main part where it marks one, never menus, footers or hidden text."""
    data = read_bytes(path)
    if not isinstance(data, bytes):
        yield data
        return
    text = decode(data, _find_declared_encoding(data) or settings.encoding)
    if isinstance(text, str):
        yield from parse_page(text)
    else:
        yield text


def parse_page(text: str) -> Iterator[Block | SkippedPart | NoteFacts]:
    """Return the blocks of a page; their lines are counted from its tags."""
    with from_docs_extra("Reading HTML files"):
        from lxml import etree
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        page = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:
        return
    if page is None:
        return
    main = _find_main_part(page)
    walk = _Walk()
    if dates := _read_dates(page):
        yield NoteFacts(dates=dates)
    parts = next((each.itertext() for each in page.iter("title")), ())
    if next(main.iter("h1"), None) is None and (title := _collapse_blanks("".join(parts))):
        yield Block(title, "heading", 1, 1, level=1, title=title)
    yield from walk.blocks(main)
    yield from walk.flush()


def _find_declared_encoding(data: bytes) -> str | None:
    found = _DECLARED.search(data[:_SEARCHED_BYTES])
    try:
        name = codecs.lookup(found[1].decode("ascii")).name if found else None
    except LookupError:
        return None
    return _MEANT.get(name, name) if name else None


def _find_main_part(page: Element) -> Element:
    whole = next(page.iter("body"), page)
    marked = [each for each in whole.iter() if each.tag == "main" or each.get("role") == "main"]
    if len(marked) == 1:
        return marked[0]
    articles = list(whole.iter("article"))
    if len(articles) == 1 and _measure_text(articles[0]) >= _LEAST_SHARE * _measure_text(whole):
        return articles[0]
    return whole


def _read_dates(page: Element) -> dict[str, datetime]:
    """Return the date that a page's `meta` elements tell, as when it was published."""
    told = {
        str(each.get("property") or each.get("name")).lower(): read_date(each.get("content"))
        for each in page.iter("meta")
    }
    found = next(filter(None, map(told.get, _DATES)), None)
    return {} if found is None else {"date": found}


def _measure_text(element: Element) -> int:
    return sum(len(text.strip()) for text in element.itertext())


def _collapse_blanks(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()


def _is_hidden(element: Element) -> bool:
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    return "display:none" in (element.get("style") or "").replace(" ", "").lower()


class _Walk:
    """Goes through a page and gathers the text that stands between two blocks."""

    def __init__(self) -> None:
        self._inline: list[str] = []
        self._first = 0

    def blocks(self, element: Element) -> Iterator[Block | SkippedPart]:
        """Return the blocks in an element."""
        self._say(element.text, element)
        for child in element:
            yield from self._read_child(child)
            self._say(child.tail, child)

    def flush(self) -> Iterator[Block]:
        """Return the text that stands between the block before and here."""
        raw, self._inline = "".join(self._inline), []
        lines = (_collapse_blanks(line) for line in raw.split("\v"))
        if text := "\n".join(filter(None, lines)):
            yield Block(text, "paragraph", self._first, self._first + raw.strip().count("\n"))

    def _say(self, text: str | None, near: Element) -> None:
        if not text:
            return
        if not any(part.strip() for part in self._inline):
            self._inline = []
            self._first = _find_line(near)
        self._inline.append(text.replace("\v", " "))

    def _read_child(self, child: Element) -> Iterator[Block | SkippedPart]:
        tag = str(child.tag)
        if tag in _SILENT or _is_hidden(child):
            return
        if tag in _NAVIGATION or child.get("role") in _NAVIGATION_ROLES:
            yield SkippedPart("navigation")
        elif tag == "br":
            self._inline.append("\v")
        elif tag in _BLOCKS:
            yield from self.flush()
            yield from self.blocks(child)
            yield from self.flush()
        elif tag in _HEADINGS or tag in _LISTS or tag in ("pre", "table"):
            yield from self.flush()
            yield from self._read_whole(child, tag)
        else:
            yield from self.blocks(child)

    def _read_whole(self, element: Element, tag: str) -> Iterator[Block | SkippedPart]:
        """Return an element that is one block."""
        if tag in _HEADINGS:
            yield from _read_heading(element, int(tag[1]))
        elif tag in _LISTS:
            items = _make_block(element, "list", "\n".join(_read_items(element, 0)))
            yield SkippedPart("navigation") if _is_menu(element) else items
        elif tag == "pre":
            code = "".join(element.itertext()).strip("\n").rstrip()
            yield _make_block(element, "code", code)
        elif next(element.iterdescendants(*_FRAMED, *_LISTS), None) is not None:
            # A table that arranges a page, in place of showing figures.
            yield from self.blocks(element)
            yield from self.flush()
        else:
            yield _make_block(element, "table", "\n".join(_read_rows(element)))


def _read_heading(element: Element, level: int) -> Iterator[Block]:
    title = _collapse_blanks(_read_visible_text(element)).removesuffix("¶").rstrip()
    if title:
        line = _find_line(element)
        yield Block(title, "heading", line, line, level=level, title=title)


def _make_block(element: Element, kind: BlockKind, text: str) -> Block | SkippedPart:
    if not text.strip():
        return SkippedPart(f"empty {kind}")
    first = _find_line(element)
    return Block(text, kind, first, first + "".join(element.itertext()).strip().count("\n"))


def _find_line(element: Element) -> int:
    return int(element.sourceline or 1)


def _read_visible_text(element: Element, but_for: Collection[str] = ()) -> str:
    """Return the text in an element without what is not shown, and without some elements."""
    parts = [element.text or ""]
    for child in element:
        tag = str(child.tag)
        if tag == "br":
            parts.append(" ")
        elif tag not in _SILENT and tag not in but_for and not _is_hidden(child):
            edge = " " if tag in _BLOCKS or tag in _LISTS or tag in _HEADINGS else ""
            parts.append(f"{edge}{_read_visible_text(child, but_for)}{edge}")
        parts.append(child.tail or "")
    return "".join(parts)


def _read_items(element: Element, depth: int) -> Iterator[str]:
    """Return the lines of a list, inner lists indented."""
    number = 0
    for child in element:
        tag = str(child.tag)
        if tag in _LISTS:
            yield from _read_items(child, depth + 1)
            continue
        number += 1
        inner = [entry for entry in child.iter(*_LISTS) if _find_list_above(entry) is child]
        own = _collapse_blanks(_read_visible_text(child, _LISTS if inner else ()))
        mark = f"{number}." if element.tag == "ol" else "-"
        if own:
            yield f"{'  ' * depth}{mark} {own}"
        for entry in inner:
            yield from _read_items(entry, depth + 1)


def _find_list_above(entry: Element) -> Element | None:
    """Return the item, or other child of a list, that a list stands in."""
    above = entry.getparent()
    while above is not None and str(above.tag) not in ("li", *_LISTS):
        above = above.getparent()
    return above


def _is_menu(element: Element) -> bool:
    """Whether a list is of links alone, and short ones."""
    links = [_collapse_blanks("".join(link.itertext())) for link in element.iter("a")]
    if len(links) < _FEWEST_LINKS:
        return False
    linked = sum(len(link) for link in links)
    whole = len(_collapse_blanks("".join(element.itertext()))) or 1
    return linked >= _LINK_SHARE * whole and linked / len(links) <= _LONGEST_LINK


def _read_rows(table: Element) -> Iterator[str]:
    for row in table.iter("tr"):
        held = (_read_visible_text(cell) for cell in row if cell.tag in ("td", "th"))
        if any(cells := [_collapse_blanks(text) for text in held]):
            yield " | ".join(cells)
