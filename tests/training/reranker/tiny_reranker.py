"""Examples in the words of the tiny encoder, short enough for its 24 tokens."""

from random import Random

from tests.training.tiny_encoder import WORDS

from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory_lab.training.reranker.examples import Candidate, RerankExample


def word_examples(count, seed):
    """The answer holds the question's word, the other two do not."""
    random = Random(seed)
    return [word_example(random) for _ in range(count)]


def word_example(random):
    asked, *others = random.sample(WORDS, 6)
    texts = [f"{asked} {others[0]}", f"{others[1]} {others[2]}", f"{others[3]} {others[4]}"]
    order = random.sample(range(3), 3)
    candidates = tuple(
        Candidate(
            RerankPassage(texts[place], before="the cat" if place == 1 else None),
            place == 0,
            "answer" if place == 0 else "retrieved",
            lexical=float(place == 0),
            dense=0.0,
            judged=True,
        )
        for place in order
    )
    labels = tuple(0.98 if place == 0 else 0.02 for place in order)
    return RerankExample("words", RerankQuery(asked), candidates, labels)
