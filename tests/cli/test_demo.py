def test_the_demo_ends_well_and_leaves_the_users_store_alone(shown_demo):
    result, store = shown_demo
    assert result.exit_code == 0, result.output
    assert not store.exists()


def test_the_demo_shows_searches_stages_history_and_questions(shown_demo):
    lines = [line.strip() for line in shown_demo[0].stdout.splitlines()]
    assert lines[1].startswith("123 memories of eight conversations added in ")
    assert "By type" in lines
    assert "What the first search did, as --explain shows it:" in lines
    assert "What changes is kept as history:" in lines
    assert any("of 16 questions find an expected memory" in line for line in lines)


def test_the_demo_ends_by_saying_how_to_go_on(shown_demo):
    assert "recollect add" in shown_demo[0].stderr
    assert "recollect import" in shown_demo[0].stderr


def test_a_kept_demo_can_be_asked_further(recollect, tmp_path):
    report = recollect.json("demo", "--keep", str(tmp_path / "mara"))
    assert (report["added"], len(report["questions"])) == (123, 16)
    assert [version["id"] for version in report["history"]] == ["fact-passport", "fact-passport~1"]
    assert recollect.json("get", "fact-kestrel", "--store", str(tmp_path / "mara"))["text"]


def test_most_questions_find_what_they_should(recollect):
    assert recollect.json("demo")["answered"] >= 14
