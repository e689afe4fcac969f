from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from ekphory_lab.evaluation.commands import (
    comparison_table,
    report_table,
    show_misses,
    summary_table,
)
from ekphory_lab.evaluation.loaders import load_conversation
from ekphory_lab.evaluation.runner import compare, evaluate, score_table
from ekphory_lab.evaluation.systems import ScoringSystem, bm25_system, dense_system


def shown(renderable):
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


@pytest.fixture
def dataset(conversation_folder):
    corpus_line = '{"pool": "b", "id": "9", "text": "Who? [red]Lisbon[/red]", "category": 4}\n'
    with (conversation_folder / "queries.jsonl").open("a") as stream:
        stream.write(corpus_line)
    with (conversation_folder / "qrels.tsv").open("a") as stream:
        stream.write("b\t9\tD1:1\t1\n")
    return load_conversation(conversation_folder)


@pytest.fixture
def report(dataset):
    return evaluate(dataset, bm25_system())


def test_the_table_names_categories_and_gives_intervals(report):
    lines = shown(report_table(report)).splitlines()
    assert any("4 single-hop" in line for line in lines)
    assert any("overall" in line for line in lines)
    assert any("95 %" in line and "-1.000" in line for line in lines)


def test_the_figures_without_wrong_labels_stand_below_the_interval(dataset):
    doubtful = replace(dataset, label_errors=frozenset({("a", "0")}))
    lines = shown(report_table(evaluate(doubtful, bm25_system()))).splitlines()
    assert lines[-2].split()[:4] == ["│", "without", "label", "errors"]
    assert "│       3 │" in lines[-2]


def test_the_summary_says_that_the_files_are_unverified(report, dataset, embedder):
    table = shown(summary_table([report, evaluate(dataset, dense_system(embedder))]))
    assert "(unverified)" in table
    assert "bm25" in table
    assert "dense" in table


def test_the_comparison_shows_who_won_how_often(report):
    table = shown(comparison_table(compare(score_table(report), score_table(report))))
    assert "bm25 minus bm25, 4 queries" in table
    assert "+.0000" in table


def test_misses_show_query_wanted_passages_and_what_stood_above(dataset):
    last_is_best = ScoringSystem("backwards", {}, lambda texts: lambda _: np.arange(len(texts)))
    text = shown(show_misses(evaluate(dataset, last_is_best), cutoff=1))
    assert "b 9 4: Who? [red]Lisbon[/red]" in text
    assert "wanted, rank 2: D1:1 Cid: I moved to Lisbon" in text
    assert "instead, rank 1: D1:2 Dan: The train to Lisbon was late" in text


def test_misses_stop_at_the_limit(report):
    text = shown(show_misses(report, cutoff=1, limit=0))
    assert "wanted" not in text
