"""The git repository that a folder is in: what it is called, and what it would commit."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ekphory.atomic_write import write_aside
from ekphory.errors import InvalidInput

GIT_SECONDS = 1.0
_UNHURRIED_SECONDS = 10.0
Standing = Literal["tracked", "untracked", "ignored"]
"""What git does with a file: it commits it, `git add -A` would, or it never does."""
_SPECIAL = re.compile(r"[\\*?\[]| $")
_OR_ELSEWHERE = "or choose another place by --scope or --config-dir"
_MARK = "# Written by `ekphory hook install`; `ekphory hook uninstall` takes it out:"


def find_project(folder: Path, *, seconds: float = GIT_SECONDS) -> str:
    """Return the name of the repository that a folder is in: its remote's, or else its path.

    `git@host:team/app.git` and `https://host/team/app` are both `host/team/app`. A folder in no
    repository is its own project, a link to a folder is that folder, and a further worktree of a
    repository is the repository.

    Raises:
        TimeoutError: Git does not tell the remote in so many seconds.
    """
    folder = folder.resolve()
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    found = _run_git(root, "config", "--get", "remote.origin.url", seconds=seconds)
    return name_of_remote(found) or str(_find_main_worktree(root))


def _find_main_worktree(root: Path) -> Path:
    """Return the folder that a worktree was made from (gitrepository-layout), or the folder."""
    file = root / ".git"
    try:
        said = file.read_text("utf-8", "replace") if file.is_file() else ""
    except OSError:
        return root  # who may not read it is told by git
    named = root / said.removeprefix("gitdir:").strip()
    # REPOSITORY/.git/worktrees/NAME
    is_worktree = named.parts[-3:-1] == (".git", "worktrees")
    return named.parents[2].resolve() if is_worktree else root


_REMOTE = re.compile(
    r"(?:[a-z+]+://)?(?:[^/@\s]*@)?([\w.-]+\.[\w-]+)(?::\d+(?=/))?[:/]+([^\s?#]+)(?:[?#]\S*)?"
)


def name_of_remote(url: str) -> str:
    """Return host and path of a remote, without a login or a query; empty where it has no host."""
    found = _REMOTE.fullmatch(url.strip())
    if found is None:
        return ""
    path = found[2].strip("/").removesuffix(".git")
    return f"{found[1].lower()}/{path}"


def _run_git(folder: Path, *arguments: str, seconds: float) -> str:
    try:
        done = subprocess.run(  # noqa: S603  a fixed command, without a shell
            ["git", "-C", str(folder), *arguments],  # noqa: S607  the user's own git
            capture_output=True,
            timeout=seconds,
            check=False,
            # They name the repository of whoever started this process, not the folder's own.
            env={name: each for name, each in os.environ.items() if not name.startswith("GIT_")},
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"git did not answer in {seconds} seconds") from error
    except OSError:
        return ""  # without git the path names the project
    return done.stdout.decode("utf-8", "replace").strip()


# What a repository would commit.


@dataclass(frozen=True, slots=True)
class ExcludeLines:
    """A change of the lines by which a repository leaves files out, and which it never commits.

    Attributes:
        file: Its own `info/exclude`.
        lines: Those that are added, or taken out.
        before, after: Its text; bytes that are not UTF-8 are kept.
        paths: The files that are left out from then on; none where lines are taken out.
    """

    file: Path
    lines: tuple[str, ...]
    before: str
    after: str
    paths: tuple[Path, ...] = ()

    @property
    def is_added(self) -> bool:
        """Whether lines are added."""
        return bool(self.paths)


def find_standing(file: Path) -> Standing | None:
    """Return what git does with a file, be it there or not yet; None where no repository is."""
    file = file.resolve()
    return _find_standing(file) if _find_root(file) is not None else None


def plan_exclusion(files: Sequence[Path]) -> ExcludeLines | None:
    """Return how the repository that files lie in leaves them out; None where it does already.

    Raises:
        InvalidInput: It commits one of them.
    """
    root, files = _find_places(files)
    if root is None:
        return None
    standings = {file: _find_standing(file) for file in files}
    for file, standing in standings.items():
        if standing == "tracked":
            remedy = f"Run `git rm --cached {file.name}` in its folder first, {_OR_ELSEWHERE}"
            raise InvalidInput("file", str(file), "is committed by its repository", remedy)
    paths = tuple(file for file, standing in standings.items() if standing == "untracked")
    if not paths:
        return None
    place, before = _read_exclude(root)
    lines = tuple(_make_pattern(path, root) for path in paths)
    begun = before if before.endswith("\n") or not before else f"{before}\n"
    return ExcludeLines(place, lines, before, begun + "".join(map(_mark, lines)), paths)


def plan_inclusion(files: Sequence[Path]) -> ExcludeLines | None:
    """Return how the lines that `plan_exclusion` added are taken out; None where none is there."""
    root, files = _find_places(files)
    if root is None:
        return None
    place, before = _read_exclude(root)
    lines = [_make_pattern(file, root) for file in files]
    ours = tuple(line for line in lines if _mark(line) in before)
    after = before
    for line in ours:
        after = after.replace(_mark(line), "")
    return ExcludeLines(place, ours, before, after) if ours else None


def apply_exclusion(change: ExcludeLines) -> None:
    """Write what is planned.

    Raises:
        InvalidInput: Other lines of the repository win, so that it would commit a file all the
            same; nothing is changed then.
    """
    _write_exclude(change.file, change.after)
    for path in change.paths:
        if _find_standing(path) != "ignored":
            _write_exclude(change.file, change.before)
            problem = "would be committed: a line `!…` of a .gitignore wins"
            raise InvalidInput("file", str(path), problem, f"Remove that line, {_OR_ELSEWHERE}")


def _find_places(files: Sequence[Path]) -> tuple[Path | None, list[Path]]:
    """Return the working tree that the first of some files lies in, and which of them do."""
    places = [file.resolve() for file in files]  # a link is written where it leads to
    root = _find_root(places[0])
    return root, [each for each in places if root is not None and each.is_relative_to(root)]


def _find_root(file: Path) -> Path | None:
    """Return the top of the working tree that a file lies in; None where there is none."""
    found = _ask_git(file, "rev-parse", "--show-toplevel")
    return Path(found).resolve() if found else None


def _find_standing(file: Path) -> Standing:
    if _ask_git(file, "--literal-pathspecs", "ls-files", "--", str(file)):
        return "tracked"
    return "ignored" if _ask_git(file, "check-ignore", "--", str(file)) else "untracked"


def _ask_git(file: Path, *arguments: str) -> str:
    folder = next(each for each in file.parents if each.is_dir())
    return _run_git(folder, *arguments, seconds=_UNHURRIED_SECONDS)


def _make_pattern(file: Path, root: Path) -> str:
    path = file.relative_to(root).as_posix()
    return "/" + _SPECIAL.sub(lambda found: f"\\{found[0]}", path)


def _mark(line: str) -> str:
    """Return a line as it is written: behind one that says whose it is."""
    return f"{_MARK}\n{line}\n"


def _read_exclude(root: Path) -> tuple[Path, str]:
    named = _ask_git(root / "any", "rev-parse", "--git-path", "info/exclude")
    place = (root / named).resolve()
    try:
        return place, place.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return place, ""


def _write_exclude(place: Path, text: str) -> None:
    with write_aside(place) as part:
        part.write_bytes(text.encode("utf-8", "surrogateescape"))
