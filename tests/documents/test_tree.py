import os
from itertools import islice

import pytest
from tests.cases import read_tables

from ekphory.documents.blocks import Exclusion, SkippedPart
from ekphory.documents.tree import DocumentFile, find_document, find_documents, watch_changes
from ekphory.errors import InvalidInput


def names(root):
    return [found.name for found in find_documents(root) if isinstance(found, DocumentFile)]


def test_documents_are_found_at_any_depth_in_the_order_of_their_names(file, tmp_path):
    for name in ("b.md", "a/deep/c.TXT", "a/x.pdf", "z.htm", "picture.png", "code.cob"):
        file(f"notes/{name}", "x")
    assert names(tmp_path / "notes") == ["a/deep/c.TXT", "a/x.pdf", "b.md", "z.htm"]


@pytest.mark.parametrize(
    "name",
    [
        *(".hidden.md", ".git/a.md", "node_modules/x/readme.md", "venv/lib/site-packages/x.txt"),
        *("a.md~", "a.bak", "~$letter.docx"),
    ],
)
def test_what_is_hidden_or_left_by_tools_is_passed_over(file, tmp_path, name):
    path = file(f"notes/{name}", "x")
    assert names(tmp_path / "notes") == []
    assert find_document(tmp_path / "notes", path) is None


def test_source_code_that_a_build_made_is_counted_and_documents_beside_it_are_read(file, tmp_path):
    for name in ("dist/app.js", "dist/guide.md", "src/app.js"):
        file(f"shop/{name}", "x")
    built = SkippedPart("source code that a build made (dist/)")
    assert list(find_documents(tmp_path / "shop")).count(built) == 1
    assert names(tmp_path / "shop") == ["dist/guide.md", "src/app.js"]
    # A folder that is named is read.
    assert names(tmp_path / "shop" / "dist") == ["app.js", "guide.md"]


@pytest.mark.parametrize(("pattern", "left"), read_tables(__file__)["excluded"])
def test_what_is_excluded_is_passed_over_in_a_folder_and_alone(file, tmp_path, pattern, left):
    root, exclude = tmp_path / "notes", Exclusion((pattern,))
    paths = [file(f"notes/{name}", "x") for name in ("a.md", "sub/b.draft.md", "sub/drafts/c.md")]
    assert [found.name for found in find_documents(root, exclude=exclude)] == left
    alone = [find_document(root, path, exclude=exclude) for path in paths]
    assert [found.name for found in alone if found is not None] == left


@pytest.mark.parametrize("pattern", ["", " ", "/", "//"])
def test_an_exclusion_of_nothing_is_refused(pattern):
    with pytest.raises(InvalidInput, match=r"^exclude=.*names nothing"):
        Exclusion((pattern,))


def test_links_are_not_followed_and_are_counted(file):
    secret = file("outside/secret.md", "x")
    root = file("notes/a.md", "x").parent
    (root / "loop").symlink_to(root)
    (root / "folder").symlink_to(secret.parent)
    (root / "secret.md").symlink_to(secret)
    assert names(root) == ["a.md"]
    assert list(find_documents(root)).count(SkippedPart("symbolic link")) == 3
    # A path behind a link is not read.
    assert find_document(root, root / "folder" / "secret.md") is None
    assert find_document(root, secret) is None


def test_a_path_within_the_root_is_given_with_its_name_and_a_single_file_is_its_own_root(file):
    path = file("notes/sub/a.md", "x")
    assert find_document(path.parents[1], path) == DocumentFile(path, "sub/a.md")
    assert list(find_documents(path)) == [DocumentFile(path, "a.md")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    assert names(tmp_path) == []
    assert find_document(tmp_path, tmp_path / "pipe.txt") is None


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
