"""A handle goes through `pickle` and `copy`: where it points, and no key."""

import copy
import pickle

import pytest

from ekphory import AsyncMemory, InvalidInput, Memory
from ekphory.errors import StoreClosed
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import FAST
from ekphory.testing import HashEmbedder

SERVICE = "http://127.0.0.1:9/v1"


def unpickled(handle):
    return pickle.loads(pickle.dumps(handle))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, unpickled])
def test_a_copy_is_a_handle_of_its_own_on_the_same_memories(tmp_path, again):
    handle = AsyncMemory(tmp_path / "store", project="home", user="mara", preset="fast")
    handle.memory.add("Mara lives in Lisbon")
    copies = (again(handle).memory, again(handle.memory))
    handle.memory.close()
    for other in copies:
        with other:
            assert (other.scope.project, other.scope.user, other.preset) == ("home", "mara", FAST)
            assert [each.text for each in other.list()] == ["Mara lives in Lisbon"]
    with pytest.raises(StoreClosed):
        again(handle.memory)


def test_no_key_is_in_a_pickle(tmp_path, monkeypatch):
    monkeypatch.setenv("EKPHORY_RERANKER_API_KEY", "secret-of-reranker")
    with Memory(tmp_path / "store", reranker=SERVICE) as memory:
        pickled = pickle.dumps(memory)
    assert SERVICE.encode() in pickled
    assert b"secret" not in pickled


@pytest.mark.parametrize(
    ("field", "given", "remedy"),
    [
        ("embedder", HashEmbedder(), "open Memory where the copy is wanted"),
        ("preset", Pipeline("fast", FAST.stages), "open Memory where the copy is wanted"),
        ("reranker", "http://secret@127.0.0.1:9/v1", "Set keys in the environment"),
        ("reranker", f"{SERVICE}?key=secret", "Set keys in the environment"),
    ],
)
def test_objects_and_keys_are_refused_with_the_remedy(tmp_path, field, given, remedy):
    with Memory(tmp_path / "store", **{field: given}) as memory:
        with pytest.raises(InvalidInput, match=remedy) as refused:
            pickle.dumps(memory)
        assert str(refused.value).startswith(f"{field}=")
        assert "secret" not in str(refused.value)


def test_a_handle_shows_where_its_memories_are_and_whose(tmp_path):
    with Memory(tmp_path, project="home", user="mara") as memory:
        assert repr(memory) == f"<Memory {str(tmp_path)!r}, project='home', user='mara'>"
    assert repr(memory) == "<Memory 'closed', project='home', user='mara'>"
