"""Memories that are like one."""

import pytest

from ekphory.errors import InvalidInput, MemoryNotFound

ALSO_OVER_A_SERVER = True


@pytest.fixture
def dogs(memory):
    memory.add_many(
        [
            {"id": "dog", "text": "The dog is called Biscuit"},
            {"id": "brown", "text": "Biscuit is a brown dog, and called so"},
            {"id": "tax", "text": "Taxes are due in May"},
        ]
    )
    return memory


def test_the_nearest_come_first_and_the_memory_itself_is_not_among_them(dogs):
    assert [each.id for each in dogs.related("dog")] == ["brown", "tax"]
    assert [each.id for each in dogs.related("dog", k=1)] == ["brown"]


def test_a_time_in_the_memory_asks_for_nothing(dogs):
    dogs.add("The dog was called in by the vet yesterday", id="vet", at="2024-02-01")
    dogs.add("A cat sat there", id="cat", at="2024-01-31")
    assert dogs.related("vet", k=1)[0].id in ("dog", "brown")


def test_what_is_not_there_is_like_nothing(dogs):
    with pytest.raises(MemoryNotFound):
        dogs.related("cat")
    with pytest.raises(InvalidInput, match="k=0"):
        dogs.related("dog", k=0)


def test_what_came_from_the_same_file_is_listed_by_its_path(memory):
    for name in ("plan", "diary"):
        memory.add_many([{"text": f"written in the {name}", "path": f"notes/{name}.md"}])
    (found,) = memory.list(filter="path = 'notes/plan.md'")
    assert found.text == "written in the plan"
