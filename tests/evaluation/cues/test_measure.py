from ekphory_lab.evaluation.cues import Scene, SceneMemory, SceneQuery, measure_cues, report_json
from ekphory_lab.evaluation.runner import silent

SCENE = Scene(
    "the kiln",
    (
        SceneMemory("chat", "Somebody photographed the kiln in the afternoon", "episodic", 0.0),
        SceneMemory("law", "Nobody opens the kiln above 100 degrees", "semantic", 1.0),
    ),
    (
        SceneQuery("q", "importance", "What is most important about the kiln?", frozenset({"law"})),
        SceneQuery("r", "semantic", "Where is the kiln?", frozenset({"elsewhere"})),
    ),
)


def test_ranks_are_given_with_hints_and_without(embedder):
    report = measure_cues([SCENE], embedder=embedder, progress=silent)
    with_hints, without_hints = report.ranks["q"]
    assert with_hints == 1
    assert without_hints in (1, 2)
    assert report.ranks["r"] == (None, None)


def test_scores_are_given_over_all_queries_and_by_what_they_ask_for(embedder):
    report = measure_cues([SCENE], embedder=embedder, progress=silent)
    found = {each.cue: (each.queries, each.with_hints.mean) for each in report.scores}
    assert found == {"all": (2, 0.5), "importance": (1, 1.0), "semantic": (1, 0.0)}
    assert report_json(report)["memories"] == 2
