from ekphory_lab.evaluation.ablation import (
    Scene,
    SceneMemory,
    SceneQuery,
    measure_cues,
    read_scenes,
)
from ekphory_lab.evaluation.runner import silent
from ekphory_lab.training.memory_words import templates, vocabulary

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
    # Scores are given over all queries and by what they ask for.
    found = {each.cue: (each.queries, each.with_hints.mean) for each in report.scores}
    assert found == {"all": (2, 0.5), "importance": (1, 1.0), "semantic": (1, 0.0)}
    assert report.memories == 2


SCENES = tuple(read_scenes())
QUERIES = [query for scene in SCENES for query in scene.queries]
MEMORIES = {memory.id: memory for scene in SCENES for memory in scene.memories}


def test_a_hundred_queries_are_answered_by_memories_of_what_they_ask_for():
    assert len({query.text for query in QUERIES}) == 100
    # A query for a type is answered by memories of that type.
    for query in QUERIES:
        types = {MEMORIES[memory].type for memory in query.relevant}
        assert query.cue == "importance" or types == {query.cue}
    # A query for what is important is answered by the most important memory.
    for scene in SCENES:
        most = max(scene.memories, key=lambda memory: memory.importance)
        for query in scene.queries:
            assert query.cue != "importance" or query.relevant == {most.id}


def test_no_scene_is_about_a_generated_topic_and_no_query_is_a_template_of_training():
    for split in ("train", "test"):
        subjects = {topic.subject for topic in vocabulary(split).topics}
        assert subjects.isdisjoint(scene.name for scene in SCENES)
    generic = templates("train").generic.values()
    kinds = [kind for kinds in templates("train").kinds.values() for kind in kinds]
    asked = {each.text for queries in (*generic, *kinds) for each in queries.mine}
    filled = {
        text.replace("{subject}", scene.name).replace("{when}", "")
        for text in asked
        for scene in SCENES
    }
    assert len(filled & {query.text for query in QUERIES}) == 0
