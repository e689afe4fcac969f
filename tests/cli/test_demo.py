def test_the_demo_ends_well_and_leaves_the_users_store_alone(shown_demo):
    result, store = shown_demo
    assert result.exit_code == 0, result.output
    assert not store.exists()


def test_the_demo_shows_searches_stages_history_and_questions(shown_demo):
    lines = [line.strip() for line in shown_demo[0].stdout.splitlines()]
    assert lines[1].startswith("127 memories of eight conversations added in ")
    assert "By type" in lines
    assert "What the first search did, as --explain shows it:" in lines
    assert "What changes is kept as history:" in lines
    assert any("of 17 questions find an expected memory" in line for line in lines)


def test_the_demo_ends_by_saying_how_to_go_on(shown_demo):
    assert "ekphory add" in shown_demo[0].stderr
    assert "ekphory import" in shown_demo[0].stderr


def test_a_kept_demo_can_be_asked_further_and_most_of_its_questions_are_answered(ekphory, tmp_path):
    report = ekphory.json("demo", "--keep", str(tmp_path / "mara"))
    assert (report["added"], len(report["questions"])) == (127, 17)
    assert report["answered"] >= 15
    assert [version["id"] for version in report["history"]] == ["fact-passport", "fact-passport~1"]
    assert ekphory.json("get", "fact-kestrel", "--store", str(tmp_path / "mara"))["text"]


def test_the_demo_shows_chains_hop_by_hop(shown_demo):
    text = shown_demo[0].stdout
    assert "✓ wife of Rembrandt → Saskia van Uylenburgh" in text
    assert "✓ father of Saskia van Uylenburgh → Rombertus van Uylenburgh" in text
    assert "✓ spouse of Leonie Vasquez → Piet Hofstra" in text
