import numpy as np
from tests.training.reranker.rerank_examples import candidate, example

from ekphory_lab.training.reranker.teachers import (
    LabelTeacher,
    ScoreTeacher,
    WeightedTeacher,
    with_soft_labels,
)


def silent(*_):
    pass


def labelled(examples, *teachers):
    weighted = [WeightedTeacher(teacher, weight) for teacher, weight in teachers]
    return with_soft_labels(examples, weighted, progress=silent)


def scores(*values):
    return ScoreTeacher("scores", lambda _: np.array(values, np.float64))


def test_gold_labels_alone_make_answers_direct_and_the_rest_irrelevant():
    asked = example(candidate("a", relevant=True), candidate("b"), candidate("c"))

    found = labelled([asked], (LabelTeacher(), 8.0))

    assert found.examples[0].labels == (0.98, 0.02, 0.02)
    assert found.levels == {1: 2, 2: 0, 3: 0, 4: 0, 5: 1}


def test_what_another_teacher_likes_better_is_partly_relevant():
    asked = example(candidate("a", relevant=True), candidate("b", judged=False))

    found = labelled([asked], (LabelTeacher(), 2.0), (scores(0.0, 50.0), 1.0))

    assert found.examples[0].labels == (0.98, 0.7)


def test_what_was_made_to_be_wrong_stays_irrelevant():
    asked = example(candidate("a", relevant=True), candidate("b", kind="inverse", judged=True))

    found = labelled([asked], (LabelTeacher(), 2.0), (scores(0.0, 50.0), 1.0))

    assert found.examples[0].labels == (0.98, 0.02)
