"""Written passages whose vectors are to stay, drawn from literal groups."""

from itertools import pairwise

import numpy as np

from ekphory_lab.training.embedder_config import EmbedderConfig, MemoryPart, WrittenPart
from ekphory_lab.training.question_groups import Question, QuestionGroup
from ekphory_lab.training.sources import written_passages

SENTENCES = tuple(f"Sentence {number} of the long paragraph ends here." for number in range(40))


def book(random):
    yield QuestionGroup("book", SENTENCES, (Question("Which is the third?", (3,)),))


class Lengths:
    """A base model: one direction for each number of words."""

    def encode(self, texts):
        return np.eye(200, dtype=np.float32)[[len(text.split()) for text in texts]]

    encode_query = encode


def config(*, passages_per_step=3, aged=0.0):
    part = WrittenPart(passages_per_step=passages_per_step, weight=1.0, mix={"book": 1.0})
    return EmbedderConfig(
        name="tiny",
        base="none",
        mix={"book": 1.0},
        steps=6,
        memories=MemoryPart(aged_groups=aged),
        written=part,
    )


def steps(first=0, **settings):
    return list(written_passages(config(**settings), {"book": book}, Lengths(), first=first))


def test_neighbouring_sentences_become_paragraphs_of_8_to_150_words():
    texts = [text for step in steps() for text in step.texts]

    assert len(texts) == 18
    whole = " ".join(SENTENCES)
    assert all(text in whole for text in texts)
    assert all(8 <= len(text.split()) <= 150 for text in texts)
    assert max(len(text.split()) for text in texts) > 60


def test_each_has_the_vector_of_the_base_model():
    for step in steps():
        assert [int(row.argmax()) for row in step.base] == [len(t.split()) for t in step.texts]


def test_a_later_start_gives_the_same_steps():
    all_steps, later = steps(), steps(first=4)

    assert [step.texts for step in later] == [step.texts for step in all_steps[4:]]


def test_steps_differ():
    assert all(one.texts != two.texts for one, two in pairwise(steps()))


def test_ages_are_given_where_the_configuration_asks_for_them():
    assert all(step.given is None for step in steps(aged=0.0))
    assert all(step.given.ages.shape == (3,) for step in steps(aged=1.0))


def test_a_configuration_without_them_has_none():
    assert steps(passages_per_step=0) == [None] * 6
