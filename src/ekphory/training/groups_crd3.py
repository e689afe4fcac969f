"""Question groups of CRD3: what a summary says, asked of the turns that it sums up.

Neighbouring passages of one episode compete. A summary of many turns is left out: it would not
say which of them answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from ekphory.training.question_groups import GroupBuilder, QuestionGroup, placed_turns
from ekphory.training.training_rows import Row, shortened

SOURCE = "crd3"
SUMMARIES_PER_GROUP = 10
MOST_TURNS = 6
_MOST_WORDS = 60
_LEAST_WORDS = 4
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LEAST_OVERLAP = 0.15


def crd3_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Give one epoch of groups."""
    fitting = [row for row in rows if len(row["turns"]) <= MOST_TURNS]
    starts = list(range(0, len(fitting) - SUMMARIES_PER_GROUP, SUMMARIES_PER_GROUP))
    offset = random.randrange(SUMMARIES_PER_GROUP)
    for start in random.sample(starts, len(starts)):
        chosen = fitting[start + offset : start + offset + SUMMARIES_PER_GROUP]
        group = _group(chosen)
        if group is not None:
            yield group


def _group(rows: Sequence[Row]) -> QuestionGroup | None:
    builder = GroupBuilder(SOURCE)
    for number, row in enumerate(rows):
        texts = [f"{turn['speaker'].title()}: {turn['text']}" for turn in row["turns"]]
        shown = [shortened(text, _MOST_WORDS) for text in texts]
        turns = zip(texts, shown, placed_turns(shown, session=number), strict=True)
        places = {
            text: builder.add_passage(passage, placement)
            for text, passage, placement in turns
            if len(text.split()) > _LEAST_WORDS
        }
        for sentence in _SENTENCE_END.split(row["summary"]):
            positives = _that_share_words(sentence, places)
            if positives and len(sentence.split()) > _LEAST_WORDS:
                builder.add_question(sentence, positives)
    return builder.build()


def _that_share_words(sentence: str, places: dict[str, int]) -> list[int]:
    wanted = _words(sentence)
    return [
        place
        for text, place in places.items()
        if len(wanted & _words(shortened(text, _MOST_WORDS))) >= _LEAST_OVERLAP * len(wanted)
    ]


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 3}
