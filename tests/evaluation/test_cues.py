import pytest

from ekphory_lab.evaluation.cues import (
    Scene,
    SceneMemory,
    SceneQuery,
    measure_cues,
    read_scenes,
)
from ekphory_lab.evaluation.runner import silent
from ekphory_lab.training.memories import templates, vocabulary

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
    assert report.memories == 2


QUERIES = [query for scene in read_scenes() for query in scene.queries]
MEMORIES = {memory.id: memory for scene in read_scenes() for memory in scene.memories}


def test_there_are_a_hundred_queries_each_asked_once():
    assert len({query.text for query in QUERIES}) == 100


def test_a_query_for_a_type_is_answered_by_memories_of_that_type():
    for query in QUERIES:
        types = {MEMORIES[memory].type for memory in query.relevant}
        assert query.cue == "importance" or types == {query.cue}


def test_a_query_for_what_is_important_is_answered_by_the_most_important_memory():
    for scene in read_scenes():
        most = max(scene.memories, key=lambda memory: memory.importance)
        for query in scene.queries:
            assert query.cue != "importance" or query.relevant == {most.id}


@pytest.mark.parametrize("split", ["train", "test"])
def test_no_scene_is_about_a_generated_topic(split):
    subjects = {topic.subject for topic in vocabulary(split).topics}
    assert subjects.isdisjoint(scene.name for scene in read_scenes())


def test_no_query_is_a_template_of_training():
    generic = templates("train").generic.values()
    kinds = [kind.queries for kinds in templates("train").kinds.values() for kind in kinds]
    asked = {each.text for queries in (*generic, *kinds) for each in queries.mine}
    filled = {
        text.replace("{subject}", scene.name).replace("{when}", "")
        for text in asked
        for scene in read_scenes()
    }
    assert len(filled & {query.text for query in QUERIES}) == 0
