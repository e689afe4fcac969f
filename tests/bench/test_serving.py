import pytest

from ekphory.errors import InvalidInput
from ekphory.types import to_plain_data
from ekphory_lab.bench.options import ServingOptions, StoreOptions, refuse_nothing
from ekphory_lab.bench.run import conditions
from ekphory_lab.bench.serving import run_serving_bench, serving_finding, serving_tables

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    stores = StoreOptions(n=300, scopes=[3], cache=tmp_path_factory.mktemp("cache"))
    return run_serving_bench(stores, ServingOptions(seconds=3), on_progress=lambda _: None)


@pytest.mark.long
def test_fifty_clients_get_no_error_and_more_are_told_when_to_come_back(report):
    (layout,) = report.layouts
    loads = [*layout.alone, *layout.together]
    assert [(load.name, load.callers) for load in loads] == [
        ("Memory.search", 1),
        ("service, in process", 1),
        ("HTTP", 1),
        ("Memory.search", 4),
        ("service, in process", 4),
        ("HTTP", 50),
    ]
    assert [load.failed for load in loads] == [{}] * 6
    assert all(0 < load.p50 <= load.p95 <= load.p99 for load in loads)
    assert layout.together[-1].answered > 50
    # Too many are told when to come back, and nobody waits in vain.
    busy, often = layout.overload
    assert set(busy.failed) == {"503"}
    assert set(often.failed) == {"429"}
    assert busy.unannounced == often.unannounced == 0


@pytest.mark.long
def test_the_report_compares_the_server_with_the_searches_in_process(report):
    plain = to_plain_data(report)
    (layout,) = plain["layouts"]
    assert layout["http_adds"] == round(layout["alone"][2]["p50"] - layout["alone"][1]["p50"], 2)
    assert set(layout["shares"]) == {"Memory.search", "service, in process"}
    (table,) = serving_tables(report)
    assert table.title == "300 memories in 3 scopes"
    assert {len(row) for row in table.rows} == {len(table.header)}
    (layout,) = report.layouts
    for expected in ("HTTP adds", "of Memory.search", "without Retry-After: 0"):
        assert expected in serving_finding(layout)
    assert "uvicorn" in "\n".join(conditions(report))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clients": 0}, "clients=0: measures nothing"),
        ({"seconds": 0}, "seconds=0: measures nothing"),
    ],
)
def test_an_option_that_measures_nothing_is_named(changed, message):
    with pytest.raises(InvalidInput, match=message):
        refuse_nothing(ServingOptions(**changed))
