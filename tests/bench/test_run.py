import json
from dataclasses import asdict

import pytest
from tests.bench.local_workers import in_process

from ekphory.errors import InvalidInput
from ekphory_lab.bench.measure import BenchOptions
from ekphory_lab.bench.run import conditions, report_tables, run_bench

pytestmark = pytest.mark.slow
OPTIONS = {
    "n": 300,
    "scopes": (3, 1),
    "queries": 12,
    "seed": 7,
    "embedder": "ekphory.testing:HashEmbedder",
    "batches": 1,
    "single_adds": 3,
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def report(kept, tmp_path_factory):
    options = BenchOptions(**OPTIONS, cache=tmp_path_factory.mktemp("cache"), keep=kept)
    return run_bench(options, on_progress=lambda _: None, launch=in_process)


def test_every_layout_is_measured_at_every_size(report):
    assert [(size.scopes, size.rows) for size in report.sizes] == [(3, 300), (1, 300)]
    assert [system.name for system in report.sizes[0].systems] == ["ekphory", "lancedb"]


def test_each_system_has_all_its_figures(report):
    for system in (system for size in report.sizes for system in size.systems):
        assert system.fill.rows == 300
        assert system.fill.per_second > 0
        assert (system.write.rows, system.add.count, system.warm.count) == (256, 3, 12)
        assert 0 < system.warm.p50 <= system.warm.p95
        assert system.bytes > 0


def test_cold_searches_are_counted_once_a_scope(report):
    assert [size.systems[0].cold.count for size in report.sizes] == [3, 1]


def test_a_scope_searched_exactly_has_full_recall_and_gives_all_hits(report):
    for size in report.sizes:
        assert size.systems[0].recall == {"10": 1.0, "100": 1.0}
        assert size.systems[0].short == 0


def test_time_is_told_by_stage_and_the_rest(report):
    assert {"open scope", "search pools", "fuse", "rest"} <= set(report.sizes[0].systems[0].stages)


def test_the_report_goes_to_json_and_back(report):
    plain = json.loads(json.dumps(asdict(report)))
    assert plain["sizes"][1]["systems"][0]["recall"]["10"] == 1.0
    assert set(plain) == {
        "machine", "versions", "options", "embedding", "sizes", "seconds"
    }  # fmt: skip


def test_the_tables_show_systems_and_stages(report):
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


def test_the_conditions_are_told_in_lines(report):
    lines = "\n".join(conditions(report))
    for expected in ("cores usable", "lancedb 0.", "seed 7, k 10, 12 queries", "hash-embedder@1"):
        assert expected in lines


def test_ekphory_can_be_measured_with_nothing_beside_it(tmp_path):
    alone = {"n": 100, "scopes": (1,), "queries": 2, "beside": "nothing"}
    options = BenchOptions(**OPTIONS | alone, cache=tmp_path)

    report = run_bench(options, on_progress=lambda _: None, launch=in_process)

    assert [found.name for found in report.sizes[0].systems] == ["ekphory"]
    assert {table.title for table in report_tables(report)} >= {"100 memories in one scope"}


def test_sizes_grow_tenfold_up_to_n():
    assert BenchOptions(n=100_000).sizes() == [1_000, 10_000, 100_000]
    assert BenchOptions(n=2_500).sizes() == [1_000, 2_500]


def test_a_directory_in_use_is_not_written_to(tmp_path):
    (tmp_path / "mine.txt").write_text("kept")
    options = BenchOptions(**OPTIONS, cache=tmp_path / "cache", keep=tmp_path)
    with pytest.raises(InvalidInput, match=r"keep=.*is in use"):
        run_bench(options, on_progress=lambda _: None, launch=in_process)


@pytest.mark.usefixtures("report")
def test_a_kept_directory_holds_the_stores_afterwards(kept):
    assert {"1-scopes-ekphory", "1-scopes-lancedb"} <= {entry.name for entry in kept.iterdir()}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 1}, "n=1: tells nothing"),
        ({"scopes": (0,)}, r"scopes=\(0,\): no layout"),
        ({"embedder": "ekphory.testing:Nothing"}, "embedder='ekphory.testing:Nothing'"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(tmp_path, changed, message):
    with pytest.raises(InvalidInput, match=message):
        run_bench(
            BenchOptions(**{**OPTIONS, **changed}, cache=tmp_path),
            on_progress=lambda _: None,
            launch=in_process,
        )


@pytest.mark.long
def test_measured_in_processes_of_their_own_memory_is_known(tmp_path):
    options = BenchOptions(**{**OPTIONS, "scopes": (2,)}, cache=tmp_path / "cache")
    report = run_bench(options, on_progress=lambda _: None)
    first = report.sizes[0].systems[0]
    assert set(first.peak_bytes) in ({"fill", "search", "write"}, set())
