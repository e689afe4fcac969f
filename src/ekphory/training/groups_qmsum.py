"""Question groups of QMSum: questions about a meeting and the spans of turns that answer them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from ekphory.training.question_groups import GroupBuilder, QuestionGroup, placed_turns
from ekphory.training.training_rows import Row, clean_text, shortened

SOURCE = "qmsum"
MOST_SPAN = 60
_PASSAGES = 80
_LEAST_WORDS = 6
_MOST_WORDS = 60


def qmsum_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Give one epoch of groups, one per meeting."""
    for row in random.sample(list(rows), len(rows)):
        group = _group(row, random)
        if group is not None:
            yield group


def _group(row: Row, random: Random) -> QuestionGroup | None:
    spans = {query["query"]: _span(query, len(row["turns"])) for query in row["queries"]}
    spans = {text: span for text, span in spans.items() if 0 < len(span) <= MOST_SPAN}
    usable = {
        place: text
        for place, turn in enumerate(row["turns"])
        if len((text := clean_text(turn["text"])).split()) >= _LEAST_WORDS
    }
    wanted = {place for span in spans.values() for place in span if place in usable}
    others = [place for place in usable if place not in wanted]
    chosen = set(random.sample(sorted(wanted), min(_PASSAGES, len(wanted))))
    chosen.update(random.sample(others, min(max(0, _PASSAGES - len(chosen)), len(others))))
    builder = GroupBuilder(SOURCE)
    texts = {
        place: f"{row['turns'][place]['speaker']}: {shortened(text, _MOST_WORDS)}"
        for place, text in usable.items()
    }
    placements = dict(zip(texts, placed_turns(list(texts.values()), session=0), strict=True))
    rows = {place: builder.add_passage(texts[place], placements[place]) for place in sorted(chosen)}
    for text, span in spans.items():
        positives = [rows[place] for place in span if place in rows]
        if positives:
            builder.add_question(text, positives)
    return builder.build()


def _span(query: Row, turns: int) -> list[int]:
    return [
        place
        for first, last in query["spans"]
        for place in range(int(first), min(int(last) + 1, turns))
    ]
