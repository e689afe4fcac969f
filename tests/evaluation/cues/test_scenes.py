import pytest

from ekphory_lab.evaluation.cues import scenes
from ekphory_lab.training.memories import templates, vocabulary

QUERIES = [query for scene in scenes() for query in scene.queries]
MEMORIES = {memory.id: memory for scene in scenes() for memory in scene.memories}


def test_there_are_a_hundred_queries_each_asked_once():
    assert len({query.text for query in QUERIES}) == 100


def test_a_query_for_a_type_is_answered_by_memories_of_that_type():
    for query in QUERIES:
        types = {MEMORIES[memory].type for memory in query.relevant}
        assert query.cue == "importance" or types == {query.cue}


def test_a_query_for_what_is_important_is_answered_by_the_most_important_memory():
    for scene in scenes():
        most = max(scene.memories, key=lambda memory: memory.importance)
        for query in scene.queries:
            assert query.cue != "importance" or query.relevant == {most.id}


@pytest.mark.parametrize("split", ["train", "test"])
def test_no_scene_is_about_a_generated_topic(split):
    subjects = {topic.subject for topic in vocabulary(split).topics}
    assert subjects.isdisjoint(scene.name for scene in scenes())


def test_no_query_is_a_template_of_training():
    generic = templates("train").generic.values()
    kinds = [kind.queries for kinds in templates("train").kinds.values() for kind in kinds]
    asked = {each.text for queries in (*generic, *kinds) for each in queries.mine}
    filled = {
        text.replace("{subject}", scene.name).replace("{when}", "")
        for text in asked
        for scene in scenes()
    }
    assert len(filled & {query.text for query in QUERIES}) == 0
