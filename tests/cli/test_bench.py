import json

import pytest


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--n", "1"), "n=1: tells nothing. Give 100 or more"),
        (("--queries", "0"), "queries=0: measures nothing. Give 1 or more"),
        (("--scopes", "0"), "scopes=(0,): no layout. Give 1, or 50, or both"),
    ],
)
def test_a_measurement_of_nothing_is_refused(ekphory, arguments, sentence):
    assert ekphory.failure("bench", *arguments) == sentence


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_small_bench_writes_its_report(ekphory, tmp_path):
    result = ekphory.run(
        "bench", "--n", "200", "--embedded", "200", "--scopes", "2", "--queries", "5",
        "--cache", str(tmp_path / "cache"), "--json", str(tmp_path / "bench.json"),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    (size,) = json.loads((tmp_path / "bench.json").read_text())["sizes"]
    assert (size["rows"], size["scopes"]) == (200, 2)
    assert [each["name"] for each in size["systems"]] == ["ekphory", "lancedb"]
