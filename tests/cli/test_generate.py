import json


def test_samples_are_written_one_a_line(ekphory, tmp_path):
    file = tmp_path / "made" / "samples.jsonl"
    result = ekphory.run("train", "generate", "--count", "30", "--out", str(file))
    assert result.exit_code == 0, result.output
    assert f"{file}: 30 samples" in result.stdout
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == 30
    assert set(rows[0]) == {"query", "positive", "negatives"}
    assert set(rows[0]["negatives"][0]) == {"kind", "text", "days_ago", "type", "importance"}


def test_the_counts_are_given_as_json(ekphory, tmp_path):
    found = ekphory.json(
        "train", "generate", "--count", "30", "--split", "test", "--out", str(tmp_path / "s.jsonl")
    )
    assert found["report"]["samples"] == 30
    assert sum(found["report"]["negatives"].values()) == 30 * 7


def test_an_unknown_half_is_named(ekphory, tmp_path):
    sentence = ekphory.failure(
        "train", "generate", "--split", "dev", "--out", str(tmp_path / "s.jsonl")
    )
    assert "dev" in sentence
    assert not (tmp_path / "s.jsonl").exists()
