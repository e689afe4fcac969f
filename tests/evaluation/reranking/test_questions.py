import re
from dataclasses import replace

import numpy as np
import pytest

from ekphory.errors import DatasetError
from ekphory.testing import HashEmbedder
from ekphory_lab.evaluation.reranking.candidates import Judge, find_candidates, model_contender
from ekphory_lab.evaluation.reranking.questions import (
    load_dialogue_set,
    load_language_set,
    measure_dialogue,
)


class ContextWords:
    """Scores by the words that a passage shares with the question and the dialogue before it."""

    name = "context words"
    batch_size = 32

    def score(self, query, passages, /):
        asked = words(" ".join([*query.context, query.text]))
        return np.array([len(asked & words(each.text)) / 100 for each in passages], np.float32)


def words(text):
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}


def test_it_has_over_a_hundred_questions_each_with_a_dialogue():
    dialogue = load_dialogue_set()
    assert len(dialogue.dataset.queries) >= 100
    assert all(len(dialogue.contexts[query.key]) >= 2 for query in dialogue.dataset.queries)
    # The dialogue does not repeat the answer.
    for query in dialogue.dataset.queries:
        texts = {each.id: each.text for each in dialogue.dataset.pools[query.pool]}
        said = " ".join(dialogue.contexts[query.key]).lower()
        assert all(
            texts[answer].lower() not in said for answer in dialogue.dataset.qrels[query.key]
        )


def test_a_reranker_that_reads_the_dialogue_gains_by_it():
    # Some questions of one conversation, so that the search for candidates is short.
    dialogue = load_dialogue_set()
    whole = dialogue.dataset
    pool = whole.queries[0].pool
    chosen = tuple(query for query in whole.queries if query.pool == pool)[::2]
    kept = replace(whole, queries=chosen, pools={pool: whole.pools[pool]})
    some = replace(dialogue, dataset=kept)
    candidates = find_candidates(kept, embedder=HashEmbedder(dimension=64))
    judge = Judge(model_contender(ContextWords()), candidates, some.dataset.pools)
    scores = measure_dialogue(some, judge)
    assert scores.difference.difference > 0.05
    assert scores.questions == len(chosen)


def test_it_has_the_same_ten_questions_in_twelve_languages():
    dataset = load_language_set()
    asked = {}
    for query in dataset.queries:
        asked.setdefault(query.category, set()).add(query.id)
    assert len(asked) == 12
    assert all(ids == {str(number) for number in range(1, 11)} for ids in asked.values())
    # Every question is asked among the answers of its own language.
    chinese = next(query for query in dataset.queries if query.key == ("Chinese", "1"))
    texts = {passage.id: passage.text for passage in dataset.pools["Chinese"]}
    assert chinese.text == "用户有哪些业余爱好？"
    assert list(dataset.qrels[chinese.key]) == ["1"]
    assert texts["1"] == "周末我喜欢攀岩，也画水彩画。"
    assert len(texts) == 10


def test_a_line_without_an_answer_is_named(tmp_path):
    (tmp_path / "languages.jsonl").write_text('{"language": "Latin", "id": "1", "question": "q"}\n')
    with pytest.raises(DatasetError, match=r"languages\.jsonl:1.*answer"):
        load_language_set(tmp_path)
