"""The git repository that a folder is in: what it is called, and what it leaves out."""

import subprocess

import pytest

from ekphory.errors import InvalidInput
from ekphory.hooks.hosts import HOSTS, apply_change, find_file, plan_install, plan_uninstall
from ekphory.hooks.repository import find_project, find_standing, name_of_remote


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "app"
    place.mkdir()
    return place


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@example.org:team/app.git", "example.org/team/app"),
        ("https://user:pass@Example.org/team/app", "example.org/team/app"),
        ("ssh://git@example.org:22/group/team/app.git", "example.org/group/team/app"),
        ("https://example.org/team/app.git?private_token=s3cr3t#s3cr3t", "example.org/team/app"),
        ("../app.git", ""),
        ("/srv/git/app.git", ""),
        ("", ""),
    ],
)
def test_a_repository_has_the_name_of_its_remote(url, name):
    assert name_of_remote(url) == name


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True)


def test_a_project_is_its_repositorys_remote_or_path(folder):
    assert find_project(folder) == str(folder)
    git(folder, "init")
    (folder / "src").mkdir()
    assert find_project(folder / "src") == str(folder)
    git(folder, "remote", "add", "origin", "git@example.org:team/app.git")
    assert find_project(folder / "src") == "example.org/team/app"


def test_a_repository_that_the_environment_names_is_not_the_folders(folder, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init")
    git(other, "remote", "add", "origin", "git@example.org:team/other.git")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert find_project(folder) == str(folder)


def test_a_link_to_a_folder_of_a_repository_is_of_its_project(folder, tmp_path):
    (folder / ".git").mkdir()
    (folder / "src").mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder / "src")
    assert find_project(link) == str(folder)


@pytest.mark.parametrize("path", [[], ["-c", "worktree.useRelativePaths=true"]])
def test_a_further_worktree_is_its_repository(tmp_path, path):
    home, beside = tmp_path / "home", tmp_path / "beside"
    git(tmp_path, "init", "home")
    git(home, "commit", "--allow-empty", "-m", "first")
    git(home, *path, "worktree", "add", str(beside))
    (beside / "src").mkdir()
    assert find_project(beside / "src") == find_project(home) == str(home)


# What a repository would commit.


@pytest.fixture
def repository(folder):
    git(folder, "init")
    return folder


def would_be_committed(repository):
    """The files that `git add -A` would add or change."""
    shown = git(repository, "status", "--porcelain", "--untracked-files=all").stdout
    return shown.decode().splitlines()


def place_in(repository, host):
    """The file of a host that lies in a repository, as its local file or its configuration."""
    if HOSTS[host].local_file is not None:
        return find_file(HOSTS[host], config_dir=None, project=repository)
    return find_file(HOSTS[host], config_dir=repository / f".{host}", project=None)


def install(host, file):
    apply_change(plan_install(HOSTS[host], file, options=[], command=["ekphory"]))


def uninstall(host, file):
    apply_change(plan_uninstall(HOSTS[host], file))


def read_exclude(repository):
    return (repository / ".git" / "info" / "exclude").read_text()


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_installed_in_a_repository_is_never_committed(repository, host):
    before, file = read_exclude(repository), place_in(repository, host)
    install(host, file)
    assert file.is_file()
    assert would_be_committed(repository) == []
    install(host, file)
    assert read_exclude(repository).count(file.name) == 1
    uninstall(host, file)
    assert not file.exists()
    assert read_exclude(repository) == before


@pytest.mark.parametrize("host", HOSTS)
def test_a_file_that_a_repository_commits_is_refused(repository, host):
    file = place_in(repository, host)
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    git(repository, "add", "-A")
    with pytest.raises(
        InvalidInput, match=f"committed by its repository.*git rm --cached {file.name}"
    ):
        install(host, file)
    assert file.read_text() == "{}"


def test_hooks_that_were_committed_are_taken_out(repository):
    file = place_in(repository, "claude-code")
    install("claude-code", file)
    git(repository, "add", "--force", str(file))
    uninstall("claude-code", file)
    assert not file.exists()


def test_a_file_that_is_ignored_already_adds_no_line(repository):
    (repository / ".gitignore").write_text(".claude/\n")
    before, file = read_exclude(repository), place_in(repository, "claude-code")
    install("claude-code", file)
    assert read_exclude(repository) == before


def test_a_line_that_somebody_else_wrote_is_kept(repository):
    exclude = repository / ".git" / "info" / "exclude"
    exclude.write_bytes(b"/.claude/settings.local.json\r\n/\xff.txt")
    file = place_in(repository, "claude-code")
    install("claude-code", file)
    uninstall("claude-code", file)
    assert exclude.read_bytes().startswith(b"/.claude/settings.local.json\r\n/\xff.txt")


def test_a_line_that_takes_the_file_in_again_is_named_and_nothing_written(repository):
    (repository / ".gitignore").write_text("!settings.local.json\n")
    before, file = read_exclude(repository), place_in(repository, "claude-code")
    with pytest.raises(InvalidInput, match="would be committed"):
        install("claude-code", file)
    assert (read_exclude(repository), file.exists()) == (before, False)


@pytest.mark.parametrize("name", ["sub", "a [b]*?", "back\\slash", "ümlaut #1"])
def test_a_folder_of_any_name_below_the_top_is_left_out_alone(repository, name):
    below = repository / name
    below.mkdir()
    install("claude-code", place_in(below, "claude-code"))
    assert would_be_committed(repository) == []
    (repository / ".claude").mkdir()
    (repository / ".claude" / "settings.local.json").touch()
    assert would_be_committed(repository) == ["?? .claude/settings.local.json"]


def test_a_further_worktree_leaves_the_file_out(repository, tmp_path):
    git(repository, "commit", "--allow-empty", "-m", "first")
    git(repository, "worktree", "add", str(tmp_path / "beside"))
    install("claude-code", place_in(tmp_path / "beside", "claude-code"))
    assert would_be_committed(tmp_path / "beside") == []


def test_a_link_into_a_repository_is_that_repositorys_file(repository, tmp_path):
    (repository / "settings.json").write_text("{}")
    git(repository, "add", "-A")
    link = tmp_path / "settings.json"
    link.symlink_to(repository / "settings.json")
    assert find_standing(link) == "tracked"
    with pytest.raises(InvalidInput, match="committed"):
        install("claude-code", link)


def test_outside_a_repository_nothing_is_left_out(folder):
    file = place_in(folder, "claude-code")
    assert plan_install(HOSTS["claude-code"], file, options=[]).exclusion is None
    assert find_standing(file) is None
