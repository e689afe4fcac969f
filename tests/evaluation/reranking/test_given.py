"""Candidates that somebody else found."""

import json

import numpy as np
import pytest

from ekphory.errors import DatasetError
from ekphory.testing import HashEmbedder
from ekphory_lab.evaluation.options import RerankOptions
from ekphory_lab.evaluation.reranking.benchmark import RerankRun
from ekphory_lab.evaluation.reranking.candidates import (
    FIRST_STAGE_ALONE,
    Judge,
    given_candidates,
    read_given,
)
from ekphory_lab.evaluation.reranking.questions import load_dialogue_set, load_language_set


@pytest.fixture
def rows(dataset):
    """For every question the passages of its pool from the last to the first."""
    return [
        {
            "pool": query.pool,
            "query_id": query.id,
            "passage_ids": [each.id for each in reversed(dataset.pools[query.pool])],
        }
        for query in dataset.queries
    ]


def written(tmp_path, rows):
    file = tmp_path / "bge-m3.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def given(dataset, file, top=2):
    return given_candidates(dataset, read_given(file), file=file, top=top)


def test_the_order_given_is_the_first_stage_and_the_report_names_the_file(dataset, rows, tmp_path):
    file = written(tmp_path, rows)

    found = given(dataset, file)

    assert [each.ids for each in found.own] == [tuple(row["passage_ids"][:2]) for row in rows]
    assert found.own[0].column("ranking").tolist() == [1.0, 0.5]
    assert found.identity.embedder == "bge-m3.jsonl (given)"
    assert found.identity.top == 2
    # The benchmark takes them in the place of its own.
    run = RerankRun(
        asked=RerankOptions(top=2, candidates=file), contenders=(), embedder=HashEmbedder()
    )
    assert run.candidates_for(dataset) == found


def test_a_reranker_reads_the_turns_around_each_passage(dataset, rows, tmp_path):
    found = given(dataset, written(tmp_path, rows))

    pool = rows[0]["pool"]
    first, second = dataset.pools[pool][:2]
    assert found.passages[pool][first.id].text == first.indexed_text
    assert found.passages[pool][first.id].before is None
    if first.session == second.session:
        assert found.passages[pool][first.id].after == second.indexed_text


def test_scores_that_are_probabilities_are_kept_and_others_are_not(dataset, rows, tmp_path):
    for row in rows:
        row["scores"] = list(np.linspace(9.0, 8.0, len(row["passage_ids"])))
    found = given(dataset, written(tmp_path, rows))
    assert found.own[0].column("ranking")[0] == 9.0
    assert found.own[0].column("probability").tolist() == [1.0, 0.5]

    for row in rows:
        row["scores"] = [0.4] * len(row["passage_ids"])
    found = given(dataset, written(tmp_path, rows))
    assert found.own[0].column("probability").tolist() == [0.4, 0.4]
    # Nobody fitted either.
    assert not Judge(FIRST_STAGE_ALONE, found, dataset.pools).is_calibrated


def test_a_row_without_a_pool_is_found_by_its_question(dataset, rows, tmp_path):
    ids = [row["query_id"] for row in rows]
    single = [row for row in rows if ids.count(row["query_id"]) == 1]
    for row in single:
        del row["pool"]

    assert given(dataset, written(tmp_path, rows)).own[0].ids == tuple(rows[0]["passage_ids"][:2])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"passage_ids": ["nowhere"]}, "'nowhere' is not in pool"),
        ({"scores": [0.1]}, "a falling number for each passage"),
        ({"query_id": "unheard"}, "no candidates for question"),
    ],
)
def test_rows_that_do_not_fit_the_set_are_named(dataset, rows, tmp_path, change, said):
    rows[-1] |= change

    with pytest.raises(DatasetError, match=said):
        given(dataset, written(tmp_path, rows))


def test_a_file_without_rows_is_refused_and_stays(tmp_path):
    file = tmp_path / "empty.jsonl"
    file.touch()
    with pytest.raises(DatasetError, match=r"empty\.jsonl: holds no candidates"):
        read_given(file)


def test_a_run_whose_file_is_of_none_of_its_sets_is_refused_before_anything_is_measured(
    dataset, rows, tmp_path
):
    file = written(tmp_path, [{**rows[0], "query_id": "unheard"}])
    run = RerankRun(asked=RerankOptions(candidates=file), contenders=(), embedder=HashEmbedder())
    with pytest.raises(DatasetError, match=f"has no candidates for a question of {dataset.name}"):
        next(run.measure([dataset], load_dialogue_set(), load_language_set()))


def test_a_file_of_another_set_or_form_gives_nothing(dataset, rows, tmp_path):
    other = [row | {"query_id": f"other {number}"} for number, row in enumerate(rows)]
    assert given(dataset, written(tmp_path, other)) is None
    file = tmp_path / "own.jsonl"
    file.write_text('{"format": "ekphory-candidates-2"}\n')
    assert read_given(file) is None
