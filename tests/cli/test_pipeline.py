"""`ekphory pipeline` shows what the presets do."""


def test_the_presets_are_listed(ekphory):
    shown = ekphory.run("pipeline", "list").stdout
    assert all(name in shown for name in ("fast", "balanced", "accurate", "memory_spark", "rrf"))
    assert "the default" in shown


def test_the_presets_are_listed_as_json(ekphory):
    listed = ekphory.json("pipeline", "list")["presets"]
    (default,) = [each for each in listed if each["default"]]
    assert default["name"] == "balanced"
    assert default["stages"][0] == "clean query"


def test_a_preset_is_shown_stage_by_stage(ekphory):
    shown = ekphory.run("pipeline", "show", "memory_spark").stdout
    assert "preset memory_spark" in shown
    assert "reranker gate" in shown
    assert "mode hard" in shown


def test_a_preset_is_shown_as_json(ekphory):
    shown = ekphory.json("pipeline", "show", "balanced")
    assert (shown["preset"], len(shown["stages"])) == ("balanced", 22)
    assert shown["stages"][6]["settings"]["depth"] == 300


def test_an_unknown_preset_is_told_with_the_nearest_one(ekphory):
    assert "Did you mean 'accurate'?" in ekphory.failure("pipeline", "show", "acurate")
