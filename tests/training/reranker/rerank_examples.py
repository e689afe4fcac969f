"""Examples and groups small enough to read, and a base model that counts words."""

from datetime import UTC, datetime

import numpy as np

from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory_lab.training.question_groups import GroupBuilder
from ekphory_lab.training.reranker.examples import Candidate, RerankExample

TURNS = (
    "Ada: Hello, how was your week?",
    "Bo: I work in a car factory near Graz.",
    "Ada: I moved to a house by the sea in Porto.",
    "Bo: I have two dogs, Rex and Max.",
    "Ada: I play the cello every evening.",
    "Bo: That sounds lovely.",
)


class WordCounts:
    """A base model without weights: the words of a small vocabulary."""

    words = sorted({word.strip(".,?:").lower() for turn in TURNS for word in turn.split()})

    def encode(self, texts):
        counts = [
            [1e-3 + text.lower().replace("?", " ").split().count(word) for word in self.words]
            for text in texts
        ]
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def chat_group():
    builder = GroupBuilder("chats")
    rows = builder.add_session(TURNS)
    builder.add_question("Where does Bo work?", [rows[1]])
    builder.add_question("What does Ada play?", [rows[4]])
    return builder.build()


def candidate(text, *, relevant=False, kind=None, lexical=0.0, dense=0.0, judged=True):
    return Candidate(
        RerankPassage(text),
        relevant,
        kind or ("answer" if relevant else "random"),
        lexical,
        dense,
        judged,
    )


def example(*candidates, source="chats", question="Where does Bo work?", labels=()):
    now = datetime(2024, 5, 8, tzinfo=UTC)
    return RerankExample(source, RerankQuery(question, now=now), candidates, labels)
