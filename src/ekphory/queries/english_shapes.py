"""English patterns over kinds of words: descriptions within descriptions, comparatives, times."""

from __future__ import annotations

import re

from ekphory.queries.cue import Shape
from ekphory.queries.query_class import NO_HINTS, Intent, QueryHints

_PAST = QueryHints(episodic=0.7)
_TASTE = QueryHints(semantic=0.9)
_HOW = QueryHints(procedural=0.9)
_FACT = QueryHints(semantic=0.6)
# A noun of any kind, and what may stand before one; the letters are those of `word_kinds.py`.
_NOUN = "[xprhF]"
_THE = "[dm]"
_AUXILIARY = "[DUVu]"


def _shape(
    signal: str,
    pattern: str,
    intent: Intent | None,
    weight: float = 0.0,
    hints: QueryHints = NO_HINTS,
) -> Shape:
    return Shape(
        signal=signal, pattern=re.compile(pattern), intent=intent, weight=weight, hints=hints
    )


CHAIN_SHAPES: tuple[Shape, ...] = (
    # The husband of my teacher; the grandfather of Livia's cousin.
    _shape("relation of a relation", rf"[rp]o{_THE}?{_NOUN}{{0,2}}'?{_NOUN}?r", "chain", 1.6),
    # My sister's boss; Otto's dog's name.
    _shape("possessive of a relation", rf"r'{_NOUN}?r|'{_NOUN}{{1,2}}'", "chain", 1.6),
    # The manager of the person who wrote it; the population of the town my parents left.
    _shape("one described by a clause", rf"(?<!F)o{_THE}{_NOUN}{{1,2}}(?:[kT]|mr)", "chain", 1.1),
    # Where does the man who fixed it live? Which wine does the friend I met like?
    _shape(
        "asks about one described",
        rf"{_AUXILIARY}{_THE}(?:{_NOUN}{{1,2}}[kI]|{_NOUN}T)",
        "chain",
        1.6,
    ),
    # Where does the daughter of our landlord live?
    _shape("asks about a relation", rf"{_AUXILIARY}{_THE}r(?:o|e{_THE}?{_NOUN})", "chain", 1.2),
    # Who fixed the bug that broke it? Which team owns the service that the job needs?
    _shape("done to one described", rf"^w{_NOUN}{{1,3}}{_THE}{_NOUN}{{1,2}}[kT]", "chain", 1.4),
    # The university where Anja's supervisor works; the country Ravi's wife comes from.
    _shape("place of a relation", rf"pk?{_THE}?{_NOUN}?'r", "chain", 1.3),
    # The birthplace of the composer of the piece.
    _shape("relation within of", rf"o{_THE}{_NOUN}?[rp]o", "chain", 1.3),
    # Who recommended the plumber, and where do they live?
    _shape("asks on", r".{3}a[wWQH][DUVubB].*[kTIi]", "chain", 1.0),
)

COMPARISON_SHAPES: tuple[Shape, ...] = (
    _shape("more than", r"c.{0,7}t", "comparison", 2.0),
    # Which is older, this or that? Not: four or more.
    _shape("more, this or that", r"c.*v(?!c)|v(?!c).*c", "comparison", 1.8),
    _shape("which is more", r"^w.{0,4}c", "comparison", 1.0),
    _shape("the most of some", r"^w.{0,2}o.*s|^w.*o.*ds", "comparison", 1.4),
    _shape("the most", r"^w.{0,5}ds", "comparison", 1.0),
    _shape("this or that", r"^[wDUVubB].*[dx]v[dx]", "comparison", 0.9),
)

TEMPORAL_SHAPES: tuple[Shape, ...] = (
    _shape("begins with when", r"^.?Q|aQ", "temporal", 1.5),
    _shape("within a past time", r"q#?y|qn", "temporal", 1.4, _PAST),
    _shape("within a time", r"f#?[yn]|#y|en", "temporal", 1.1),
    _shape("names a day or month", r"n", "temporal", 1.0),
    _shape("before or after", r"z", "temporal", 1.0),
    _shape("past, at a time", r"[BUh].*(?:[nz]|fy)|[nz].*[BU]", "temporal", 0.0, _PAST),
)

PREFERENCE_SHAPES: tuple[Shape, ...] = (
    # What does she like? What snacks do we love? Restaurants I liked.
    # Not: what does it look like, what will it be like, I would like to.
    _shape(
        "asks what one likes", r"^(?!.*[gbV]l).*(?:[DUV][^uhb]{1,6}l|Il)", "preference", 2.6, _TASTE
    ),
    # What would my wife choose? What can't my nephew stand?
    _shape("asks what one would take", r"V.{1,3}G|um.G", "preference", 1.0, _TASTE),
)

PROCEDURAL_SHAPES: tuple[Shape, ...] = (
    # How is it fed? How are invoices approved here?
    _shape("asks how it is done", r"^Hb.*h.?$", "procedural", 1.0, _HOW),
)

FACT_SHAPES: tuple[Shape, ...] = (
    # My passport number; Petra's phone number.
    _shape("asks for a fact about one", r"(?:m.?|')[xprF]{0,2}F", None, hints=_FACT),
)

ENGLISH_SHAPES: tuple[Shape, ...] = (
    *CHAIN_SHAPES,
    *COMPARISON_SHAPES,
    *TEMPORAL_SHAPES,
    *PREFERENCE_SHAPES,
    *PROCEDURAL_SHAPES,
    *FACT_SHAPES,
)
