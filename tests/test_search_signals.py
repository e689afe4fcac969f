"""What a search goes by, from the words of a query to the order of hits; bundled models."""

import pytest

from ekphory.memory import Memory

NOW = "2026-06-01"
WALK = (
    "We bought bread, cheese and tomatoes, walked along the river, fed the ducks until it rained, "
    "and met Quibell by the bridge"
)


@pytest.fixture
def remember(tmp_path, close_at_end):
    """Opens a memory of its own that holds what is given, all of one day."""

    def remember(*memories):
        memory = close_at_end(Memory(tmp_path / "store"))
        memory.add_many({**given, "at": "2026-05-01"} for given in memories)
        return memory

    return remember


def best(hits, score):
    return max(hits, key=lambda hit: hit.scores[score]).id


@pytest.mark.parametrize("preset", ["balanced", "accurate", "rrf", "memory_spark"])
def test_words_find_what_vectors_miss_and_vectors_what_words_miss(remember, preset):
    memory = remember(
        {"id": "walk", "text": WALK},
        {"id": "who", "text": "Somebody told me who he is"},
        {"id": "knee", "text": "The physician looked at my injured knee"},
    )

    by_name = memory.search("Who is Quibell?", preset=preset, now=NOW).hits
    assert best(by_name, "cosine") == "who"
    assert [hit.id for hit in by_name if hit.scores["bm25"] > 0] == ["walk"]
    assert by_name[0].id == "walk"

    by_meaning = memory.search("What did the doctor say about my leg?", preset=preset, now=NOW).hits
    assert [hit.id for hit in by_meaning if hit.scores["bm25"] > 0] == []
    assert by_meaning[0].id == "knee"


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("What is my preference for tea?", "semantic"),
        ("What happened with Ann's tea?", "episodic"),
        ("How do I make tea for Ann?", "procedural"),
    ],
)
@pytest.mark.parametrize("preset", ["fast", "balanced", "accurate", "rrf", "memory_spark"])
def test_of_equal_texts_the_type_that_the_words_ask_for_comes_first(remember, preset, query, kind):
    text = "Ann, the tea and the small red pot"
    memory = remember(
        *({"id": each, "text": text, "type": each, "importance": 0.5}
          for each in ("episodic", "semantic", "procedural"))
    )  # fmt: skip
    assert memory.search(query, preset=preset, now=NOW).hits[0].id == kind


@pytest.mark.parametrize("preset", ["fast", "balanced", "accurate"])
@pytest.mark.parametrize("important", ["colour", "width"])
def test_what_is_most_important_is_asked_for_in_words_and_comes_first(remember, preset, important):
    texts = {
        "colour": "The garden gate is green",
        "width": "The gate of the garden is two metres wide",
    }
    memory = remember(
        *(
            {"id": each, "text": text, "importance": 0.95 if each == important else 0.1}
            for each, text in texts.items()
        )
    )

    # What fits best comes first, however important the other is.
    plain = memory.search("Which colour has the garden gate?", preset=preset, now=NOW)
    assert plain.hits[0].id == "colour"
    asked = memory.search("What is most important about the garden gate?", preset=preset, now=NOW)
    assert asked.hits[0].id == important
