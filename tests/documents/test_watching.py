from itertools import islice

import pytest

from ekphory.documents.tree import watch_changes


def rounds_after(root, act):
    """Begin to watch, act, and give the paths of the rounds that follow."""
    rounds = watch_changes(root)
    next(rounds)
    act()
    found = {path for changed in islice(rounds, 1) for path in changed}
    rounds.close()
    return found


@pytest.mark.slow
def test_a_change_below_a_folder_is_told(file, tmp_path):
    path = file("notes/sub/a.md", "old")
    assert path in rounds_after(tmp_path / "notes", lambda: path.write_text("new"))


@pytest.mark.slow
def test_a_file_that_is_replaced_by_another_is_told(file, tmp_path):
    path, other = file("notes/a.md", "old"), file("b.md", "new")
    assert path in rounds_after(path, lambda: other.replace(path))


@pytest.mark.slow
def test_a_watch_ends_when_it_is_told_to(tmp_path):
    assert list(watch_changes(tmp_path, stopped=lambda: True)) == [set()]
