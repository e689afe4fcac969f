"""What was derived from a store is kept beside it, and trusted only as far as it holds."""

import json
import os

import numpy as np
import pytest

from ekphory.errors import StoreError
from ekphory.store import kept_arrays
from ekphory.store.kept_arrays import FOLDER, KeptArrays

TABLE = "memories.lance"


@pytest.fixture
def directory(tmp_path):
    """A store's directory, with the commits of versions 1 to 3."""
    versions = tmp_path / TABLE / "_versions"
    versions.mkdir(parents=True)
    for number in (1, 2, 3):
        (versions / f"{number}.manifest").write_bytes(f"commit {number}".encode())
    return tmp_path


@pytest.fixture
def kept(directory):
    return KeptArrays(directory, table=TABLE)


def add(kept, subject="mara", *, version=2, newest=2, **arrays):
    given = arrays or {"keys": [np.array([1, 2]), np.array([3])]}
    return kept.add(subject, given, version=version, is_newest=lambda asked: asked == newest)


def sets_in(directory):
    return sorted(path.name for path in (directory / FOLDER).iterdir())


def test_arrays_come_back_joined_and_mapped_from_their_files(kept):
    vectors = [np.zeros((2, 3), np.float32), np.ones((1, 3), np.float32)]
    names, nothing = [np.array(["a", "bcd"])], [np.empty(0, np.uint32)]
    assert add(kept, vectors=vectors, names=names, nothing=nothing)
    found = kept.read("mara", newest=2)
    assert (found.version, found.is_proven, set(found.arrays)) == (
        2, True, {"vectors", "names", "nothing"},
    )  # fmt: skip
    assert found.arrays["vectors"].tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 1]]
    assert isinstance(found.arrays["vectors"].base, np.memmap)
    assert found.arrays["names"].tolist() == ["a", "bcd"]
    assert found.arrays["nothing"].dtype == np.uint32


def test_of_one_subject_the_newest_set_is_kept_and_no_other_subject_sees_it(kept, directory):
    assert add(kept, version=1, newest=1)
    assert add(kept, version=2)
    assert len(sets_in(directory)) == 1
    assert kept.read("mara", newest=3).version == 2
    assert kept.read("jan", newest=3) is None


def test_nothing_is_kept_of_a_version_that_is_not_the_newest_any_more(kept, directory):
    assert not add(kept, version=1, newest=2)
    assert not (directory / FOLDER).exists()


def test_what_a_store_does_not_have_yet_is_not_read(kept):
    add(kept)
    assert kept.read("mara", newest=1) is None


def test_another_commit_of_the_same_number_is_another_table(kept, directory):
    add(kept)
    (directory / TABLE / "_versions" / "2.manifest").write_bytes(b"another")
    assert kept.read("mara", newest=3) is None


def test_where_the_commit_is_gone_the_set_is_not_proven(kept, directory):
    add(kept)
    (directory / TABLE / "_versions" / "2.manifest").unlink()
    assert not kept.read("mara", newest=3).is_proven


def replace_in(path, old, new):
    path.write_bytes(path.read_bytes().replace(old, new))


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: (folder / "facts.json").write_text("{"),
        lambda folder: (folder / "facts.json").write_text("{}"),
        lambda folder: (folder / "keys.npy").write_bytes(b"no array"),
        lambda folder: os.truncate(folder / "keys.npy", 130),
        lambda folder: os.truncate(folder / "keys.npy", 0),
        lambda folder: replace_in(folder / "keys.npy", b"), }", b"(((("),
        lambda folder: (folder / "keys.npy").write_bytes(b"PK\3\4"),
        lambda folder: (folder / "keys.npy").unlink(),
    ],
)
def test_a_damaged_set_is_passed_over(kept, directory, harm):
    add(kept)
    (only,) = (directory / FOLDER).iterdir()
    harm(only)
    assert kept.read("mara", newest=2) is None
    # It is made anew, and takes the place.
    assert add(kept)
    assert kept.read("mara", newest=2).arrays["keys"].tolist() == [1, 2, 3]


def test_what_is_named_like_it_and_of_another_subject_is_passed_over(kept, directory):
    add(kept)
    (only,) = (directory / FOLDER).iterdir()
    facts = json.loads((only / "facts.json").read_text())
    (only / "facts.json").write_text(json.dumps(facts | {"subject": "jan"}))
    assert kept.read("mara", newest=2) is None


def test_a_set_that_another_ekphory_made_is_not_found(kept, monkeypatch):
    add(kept)
    monkeypatch.setattr(kept_arrays, "__version__", "0.0.1")
    assert kept.read("mara", newest=2) is None


def test_what_is_purged_while_it_is_being_written_is_not_kept(kept, directory):
    class Purging(list):
        """The parts of an array, while which are written the store is purged."""

        def __iter__(self):
            kept.clear()
            return super().__iter__()

    given = {"first": [np.arange(3)], "second": Purging([np.arange(3)])}
    with pytest.raises(StoreError, match="cannot be written"):
        kept.add("mara", given, version=2, is_newest=lambda _: True)
    add(kept)
    kept.clear()
    assert kept.read("mara", newest=2) is None
    assert not (directory / FOLDER).exists()


def test_what_a_purge_could_not_finish_goes_with_the_next_one(kept, directory):
    left = directory / f"{FOLDER}.0123.gone"
    left.mkdir()
    kept.clear()
    assert not left.exists()


def test_the_sets_that_were_not_used_for_longest_go_first(kept, directory, monkeypatch):
    monkeypatch.setattr(kept_arrays, "_MOST_SETS", 2)
    for place, subject in enumerate(("mara", "jan")):
        add(kept, subject)
        newest = max((directory / FOLDER).iterdir(), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (1_000 + place, 1_000 + place))
    assert kept.read("mara", newest=2) is not None
    add(kept, "zoe")
    found = {name: kept.read(name, newest=2) is not None for name in ("mara", "jan", "zoe")}
    assert found == {"mara": True, "jan": False, "zoe": True}


def test_what_a_crash_left_half_written_goes_after_an_hour(kept, directory):
    left = directory / FOLDER / "abc-1.123.part"
    left.mkdir(parents=True)
    add(kept, "mara")
    assert left.exists()
    os.utime(left, (1_000, 1_000))
    add(kept, "jan")
    assert not left.exists()
