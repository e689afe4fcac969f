"""What a search gives: hits by place, and the same as data, as a table and in a notebook."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ekphory.search import SearchResult
from ekphory.types import Hit, MemoryRecord, Trace

AT = datetime(2026, 5, 1, tzinfo=UTC)


def make_hit(name, score, **scores):
    record = MemoryRecord(
        id=name, text=f"text of {name}", at=AT, created_at=AT, metadata={"city": "Oslo"}
    )
    return Hit(id=name, text=record.text, score=score, scores=scores, memory=record)


@pytest.fixture
def result():
    hits = (make_hit("a", 0.75, cosine=0.5), make_hit("b", 0.5, bm25=2.0), make_hit("c", 0.25))
    return SearchResult(hits=hits, trace=Trace(preset="balanced"))


EMPTY = SearchResult(hits=(), trace=Trace(preset="balanced"))


def test_hits_are_reached_by_place_and_by_slice(result):
    assert (result[0].id, result[-1].id) == ("a", "c")
    assert [hit.id for hit in result[1:]] == ["b", "c"]
    with pytest.raises(IndexError):
        result[3]


@pytest.mark.slow
def test_the_example_of_the_quick_start_prints_what_it_says(tmp_path, monkeypatch, capsys):
    page = Path(__file__).parents[1] / "docs" / "quick-start.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(example)
    said = re.findall(r"^print\(.*\)  # (.*)$", example, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == said


def test_its_representation_is_one_line(result):
    assert repr(result) == "<SearchResult: 3 hits, the first 0.75 'text of a'>"
    assert repr(EMPTY) == "<SearchResult: no hits>"


def test_the_representation_of_a_hit_is_one_line(result):
    assert repr(result[0]) == "<Hit 0.75 'text of a', id='a'>"


def test_it_is_plain_data(result):
    data = json.loads(json.dumps(result.to_dict()))
    assert list(data) == ["hits", "abstained", "order"]
    assert data["hits"][0]["scores"] == {"cosine": 0.5}
    assert data["hits"][0]["memory"]["at"] == "2026-05-01T00:00:00+00:00"


def test_a_table_has_a_row_a_hit_and_a_column_a_score(result):
    table = result.to_arrow()
    assert table.column_names[:4] == ["id", "text", "score", "scores.bm25"]
    assert table.column("scores.bm25").to_pylist() == [None, 2.0, None]
    assert table.column("at").to_pylist() == [AT, AT, AT]
    assert table.column("metadata").to_pylist()[0] == '{"city": "Oslo"}'


def test_a_table_of_nothing_has_the_same_types(result):
    empty = EMPTY.to_arrow()
    assert empty.num_rows == 0
    assert set(empty.schema) <= set(result.to_arrow().schema)


def test_a_data_frame_has_the_same_rows(result):
    frame = result.to_pandas()
    assert frame["score"].tolist() == [0.75, 0.5, 0.25]


def test_a_notebook_shows_a_table_in_which_no_text_is_markup():
    hit = make_hit("a", 0.5)
    shown = SearchResult(
        hits=(Hit("a", "<script>x</script>", 0.5, {}, hit.memory),), trace=Trace(preset="balanced")
    )._repr_html_()
    assert "&lt;script&gt;x&lt;/script&gt;" in shown
    assert "<script" not in shown


def test_a_notebook_numbers_the_hits_from_one(result):
    rows = result._repr_html_().split("<tr>")[2:]
    assert [row[:6] for row in rows] == ["<td>1<", "<td>2<", "<td>3<"]
