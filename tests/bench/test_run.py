import json
from dataclasses import asdict

import pytest
from tests.bench.local_workers import in_process

from ekphory.errors import InvalidInput
from ekphory_lab.bench.measure import in_child
from ekphory_lab.bench.options import BenchOptions, StoreOptions
from ekphory_lab.bench.run import conditions, report_tables, run_bench

pytestmark = pytest.mark.slow
STORES = {
    "n": 300,
    "scopes": [3, 1],
    "seed": 7,
    "embedder": "ekphory.testing:HashEmbedder",
}


def bench(*, queries=12, beside="lancedb", launch=in_process, **changed):
    return run_bench(
        StoreOptions(**STORES | changed),
        BenchOptions(queries=queries, beside=beside),
        on_progress=lambda _: None,
        launch=launch,
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return bench(cache=tmp_path_factory.mktemp("cache"))


@pytest.mark.long
def test_every_layout_is_measured_at_every_size_and_each_system_has_all_its_figures(report):
    assert [(size.scopes, size.rows) for size in report.sizes] == [(3, 300), (1, 300)]
    assert [system.name for system in report.sizes[0].systems] == ["ekphory", "lancedb"]
    for system in (system for size in report.sizes for system in size.systems):
        assert (system.write.rows, system.add.count, system.warm.count) == (2560, 100, 12)
        assert system.write.per_second > 0
        assert 0 < system.warm.p50 <= system.warm.p95
        assert system.bytes > 0
    # Cold searches are counted once a scope.
    assert [size.systems[0].cold.count for size in report.sizes] == [3, 1]
    # A scope that is searched exactly has full recall and gives all hits.
    for size in report.sizes:
        assert size.systems[0].recall == {"10": 1.0, "100": 1.0}
        assert size.systems[0].short == 0
    # Time is told by stage, and the rest.
    assert {"open scope", "search pools", "fuse", "rest"} <= set(report.sizes[0].systems[0].stages)


@pytest.mark.long
def test_the_report_is_told_as_json_tables_and_lines(report):
    plain = json.loads(json.dumps(asdict(report)))
    assert plain["sizes"][1]["systems"][0]["recall"]["10"] == 1.0
    assert set(plain) == {"machine", "versions", "options", "sizes", "seconds"}
    # The tables show systems and stages.
    tables = {table.title: table for table in report_tables(report)}
    table = tables["300 memories in 3 scopes"]
    assert table.header == ("", "ekphory", "lancedb")
    labels = [row[0] for row in table.rows]
    for label in ("search p95, ms", "recall@10", "writes/s with model"):
        assert label in labels
    assert {len(row) for row in table.rows} == {3}
    assert "300 memories in one scope" in tables
    stages = tables["stages at 300 memories"]
    assert "search pools" in [row[0] for row in stages.rows]
    # The conditions are told in lines.
    lines = "\n".join(conditions(report))
    for expected in ("cores usable", "lancedb 0.", "seed 7", "queries 12", "HashEmbedder"):
        assert expected in lines


def test_ekphory_can_be_measured_with_nothing_beside_it(tmp_path):
    report = bench(n=100, scopes=[1], queries=2, beside="nothing", cache=tmp_path)

    assert [found.name for found in report.sizes[0].systems] == ["ekphory"]
    assert {table.title for table in report_tables(report)} >= {"100 memories in one scope"}


def test_sizes_grow_tenfold_up_to_n():
    assert StoreOptions(n=100_000).sizes() == [1_000, 10_000, 100_000]
    assert StoreOptions(n=2_500).sizes() == [1_000, 2_500]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 1}, "n=1: tells nothing"),
        ({"scopes": [0]}, r"scopes=\(0,\): no layout"),
        ({"embedder": "ekphory.testing:Nothing"}, "embedder='ekphory.testing:Nothing'"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(tmp_path, changed, message):
    with pytest.raises(InvalidInput, match=message):
        bench(**changed, cache=tmp_path)


@pytest.mark.long
def test_measured_in_processes_of_their_own_memory_is_known(tmp_path):
    report = bench(scopes=[2], cache=tmp_path / "cache", launch=in_child)
    first = report.sizes[0].systems[0]
    assert set(first.peak_bytes) in ({"fill", "search", "write"}, set())
