"""The questions in other languages than English."""

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.reranking.questions import load_language_set


def test_it_has_the_same_ten_questions_in_twelve_languages():
    dataset = load_language_set()
    asked = {}
    for query in dataset.queries:
        asked.setdefault(query.category, set()).add(query.id)
    assert len(asked) == 12
    assert all(ids == {str(number) for number in range(1, 11)} for ids in asked.values())


def test_every_question_is_asked_among_the_answers_of_its_own_language():
    dataset = load_language_set()
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
