import numpy as np
import pytest
from rich.console import Console
from tests.evaluation.conftest import SETS, append_line

from ekphory.errors import InvalidInput
from ekphory.models.reranker import TINY_RERANKER, bundled_reranker
from ekphory.retrieval.pipeline import OptionalModels
from ekphory.testing import OverlapReranker
from ekphory.types import to_plain_data
from ekphory_lab.evaluation.commands import (
    compare_reports,
    comparison_table,
    list_misses,
    report_lines,
    report_table,
    reports_json,
    run_systems,
    summary_table,
)
from ekphory_lab.evaluation.loaders import load_conversation, load_multihop
from ekphory_lab.evaluation.metrics import MULTIHOP_MEASURES
from ekphory_lab.evaluation.options import MeasureOptions
from ekphory_lab.evaluation.runner import Means, compare, evaluate
from ekphory_lab.evaluation.systems import ScoringSystem, bm25_system, dense_system
from ekphory_lab.evaluation.tables import ReportTable, format_difference, format_figure


def test_every_system_asked_for_is_measured_in_that_order_and_compared(
    conversation_folder, embedder
):
    asked = MeasureOptions(system=["rrf", "bm25", "mean", "dense"])
    reports = run_systems(load_conversation(conversation_folder), asked, Means(embedder=embedder))
    assert [report.system for report in reports] == ["rrf", "bm25", "mean", "dense"]
    assert [(each.first, each.second) for each in compare_reports(reports)] == [
        ("bm25", "rrf"),
        ("mean", "rrf"),
        ("dense", "rrf"),
    ]
    compared = to_plain_data(reports_json(reports))["comparisons"][0]
    assert (compared["first"], compared["second"], compared["queries"]) == ("bm25", "rrf", 3)
    assert compared["tests"]["MAP"].keys() >= {"difference", "low", "high", "p_value"}


def test_a_gate_is_measured_beside_the_same_search_without_it(conversation_folder, embedder):
    asked = MeasureOptions(preset="memory_spark", ungated=True)
    means = Means(embedder=embedder, models=OptionalModels(reranker=OverlapReranker()))
    gated, always = run_systems(load_conversation(conversation_folder), asked, means)
    assert always.system == "ekphory:memory_spark, always reranked"
    assert "gate_skipped" not in always.configuration
    share = gated.configuration["gate_skipped"]
    told = [line for line in report_lines(gated) if "gate" in line]
    assert f"let the reranker rest for {share:.1%} of the questions" in told[0]


def test_the_learned_gate_is_measured_beside_the_search_that_always_reads(conversation_folder):
    asked = MeasureOptions(preset="balanced", gated=True)
    means = Means(models=OptionalModels(reranker=bundled_reranker(TINY_RERANKER)))
    always, gated = run_systems(load_conversation(conversation_folder), asked, means)
    assert (always.system, gated.system) == ("ekphory:balanced", "ekphory:balanced, gated")
    assert "gate_skipped" not in always.configuration
    assert 0 <= gated.configuration["gate_skipped"] <= 1
    (compared,) = compare_reports((always, gated))
    assert (compared.first, compared.second) == ("ekphory:balanced, gated", "ekphory:balanced")


class Contrary(OverlapReranker):
    """Prefers what shares no word with the question, and counts how often it was asked."""

    asked = 0

    def score(self, query, passages, /):
        self.asked += 1
        return 1 - super().score(query, passages)


def test_what_a_gate_is_worth_is_told_with_its_sign_and_what_it_saves_is_not_read(
    conversation_folder, embedder
):
    reranker = Contrary()
    means = Means(embedder=embedder, models=OptionalModels(reranker=reranker))
    asked = MeasureOptions(preset="memory_spark", ungated=True)

    reports = run_systems(load_conversation(conversation_folder), asked, means)

    # Of three questions the gate lets none be read here; without it each is read once.
    gated, always = reports
    assert gated.configuration["gate_skipped"] == 1.0
    assert reranker.asked == 3
    # A reranker that is always wrong is worth less than nothing, and the comparison says so.
    (worth,) = compare_reports(reports)
    assert (worth.first, worth.second) == (always.system, gated.system)
    assert gated.mean("MAP") == 1.0
    assert worth.tests["MAP"].difference == pytest.approx(1.0 - always.mean("MAP"))
    assert worth.tests["MAP"].better == 2
    # What a question took is told of both.
    told = to_plain_data(reports_json(reports))["reports"]
    assert [each["latency_ms"]["count"] for each in told] == [3, 3]


def test_what_reading_is_worth_is_measured_beside_the_same_search_without_it(
    conversation_folder, embedder
):
    asked = MeasureOptions(preset="accurate", unread=True)
    means = Means(embedder=embedder, models=OptionalModels(reranker=OverlapReranker()))
    reports = run_systems(load_conversation(conversation_folder), asked, means)
    assert [each.system for each in reports] == ["ekphory:accurate", "ekphory:accurate, unread"]
    assert [each.first for each in compare_reports(reports)] == ["ekphory:accurate, unread"]


def test_multihop_reports_whether_all_gold_passages_were_found(conversation_folder):
    dataset = load_multihop(conversation_folder)
    asked = MeasureOptions(system=["bm25"])
    (report,) = run_systems(dataset, asked, Means(), measures=MULTIHOP_MEASURES)
    assert report_table(report).header[-5:] == ("MAP", "R@2", "R@5", "R@10", "AllGold@10")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"system": ["bm52"]}, "system='bm52'"),
        ({"system": ["ekphory2"]}, "system='ekphory2'"),
        ({"system": ["ekphory:fast:never"]}, "there is no use of time 'never'"),
        ({"system": ["bm25"], "agent": "local"}, "no system has a store"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        run_systems(load_conversation(SETS / "chats"), MeasureOptions(**options), Means())


@pytest.fixture
def dataset(conversation_folder):
    query = '{"pool": "b", "id": "9", "text": "Who? [red]Lisbon[/red]", "category": 4}'
    append_line(conversation_folder / "queries.jsonl", query)
    append_line(conversation_folder / "qrels.tsv", "b\t9\tD1:1\t1")
    return load_conversation(conversation_folder)


def test_the_table_names_categories_and_gives_intervals(dataset, embedder):
    report = evaluate(dataset, bm25_system())
    rows = {row[0]: row[1:] for row in report_table(report).rows}
    assert list(rows) == ["1 multi-hop", "4 single-hop", "overall", "95 %"]
    assert rows["overall"][0] == "4"
    assert rows["95 %"][1].endswith(" to 1.000")
    # The summary says that the files are unverified.
    table = summary_table([report, evaluate(dataset, dense_system(embedder))])
    assert "(unverified)" in table.title
    assert [row[0] for row in table.rows] == ["bm25", "dense"]
    # The comparison shows who won how often.
    table = comparison_table(compare(report, report))
    assert table.title == "bm25 minus bm25, 4 queries"
    assert table.rows[0] == ("MAP", "+.000 (+.000 to +.000), p = 1.000", "0", "0")


def test_misses_show_query_wanted_passages_and_what_stood_above(dataset):
    last_is_best = ScoringSystem("backwards", {}, lambda texts: lambda _: np.arange(len(texts)))
    lines = list(list_misses(evaluate(dataset, last_is_best), cutoff=1))
    assert "\nb 9 4: Who? [red]Lisbon[/red]" in lines
    assert "  wanted, rank 2: D1:1 Cid: I moved to Lisbon" in lines
    assert "  instead, rank 1: D1:2 Dan: The train to Lisbon was late" in lines


def test_a_table_is_drawn_and_written_as_markdown():
    table = ReportTable("title", ("system", "MAP"), (("a|b [x]", ".5"),), note="a note")
    assert table.markdown() == (
        "## title\n\na note\n\n| system | MAP |\n| --- | ---: |\n| a/b [x] | .5 |\n"
    )
    console = Console(width=80, color_system=None)
    with console.capture() as capture:
        console.print(table.for_terminal())
    assert "a|b [x]" in capture.get()
    assert "a note" in capture.get()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (format_figure(0.5), ".500"),
        (format_figure(-0.5), "-.500"),
        (format_figure(1), "1.000"),
        (format_difference(0.1234), "+.123"),
        (format_difference(-0.0001), "+.000"),
        (format_difference(-0.01), "-.010"),
    ],
)
def test_figures_have_no_leading_zero(written, expected):
    assert written == expected
