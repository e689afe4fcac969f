"""A run file that another tool scores gives the figures of the report."""

import ir_measures
import numpy as np
import pytest

from ekphory_lab.evaluation.datasets import UNKNOWN, Dataset, EvaluationQuery, Passage
from ekphory_lab.evaluation.loaders import write_qrels, write_run
from ekphory_lab.evaluation.runner import evaluate
from ekphory_lab.evaluation.systems import ScoringSystem


def test_figures_from_the_run_file_equal_those_of_the_report_although_scores_tie(tmp_path):
    passages = tuple(Passage(id=f"my page {number}", text="x") for number in range(50))
    queries = tuple(EvaluationQuery(pool="p", id=f"{number}", text="x") for number in range(20))
    dataset = Dataset(
        name="ties",
        pools={"p": passages},
        queries=queries,
        qrels={query.key: {f"my page {int(query.id) * 2}": 1} for query in queries},
        source=UNKNOWN,
        files=(),
    )
    all_equal = ScoringSystem("equal", {}, lambda texts: lambda _: np.full(len(texts), 0.3))
    report = evaluate(dataset, all_equal)
    write_run(report, tmp_path / "x.run")
    write_qrels(dataset, tmp_path / "x.qrels")
    names = {"MAP": "AP@100", "MRR": "RR", "R@20": "R@20"}
    parsed = {ours: ir_measures.parse_measure(theirs) for ours, theirs in names.items()}
    figures = ir_measures.calc_aggregate(
        parsed.values(),
        ir_measures.read_trec_qrels(str(tmp_path / "x.qrels")),
        ir_measures.read_trec_run(str(tmp_path / "x.run")),
    )
    for ours, theirs in parsed.items():
        assert figures[theirs] == pytest.approx(report.overall.estimates[ours].mean)
