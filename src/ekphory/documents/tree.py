"""The documents below a folder: which files are read, and which never are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ekphory.documents.blocks import LeftOut, Problem
from ekphory.documents.exclusion import NOTHING_EXCLUDED, Exclusion
from ekphory.documents.readers import reader_for

_EXCLUDED_FOLDERS = ("node_modules", "__pycache__", "site-packages", "venv")
_EXCLUDED_FILES = ("*.bak", "*~", "~$*")


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A document that may be read.

    Attributes:
        path: Where it lies.
        name: Its path below the root, with `/`; the name alone where the root is the file.
    """

    path: Path
    name: str


Found = DocumentFile | LeftOut | tuple[str, Problem]
"""A document, a link that is not followed, or a place with what keeps it from being read."""


def documents_below(root: Path, *, exclude: Exclusion = NOTHING_EXCLUDED) -> Iterator[Found]:
    """Give the documents at a path, in the order of their names.

    Links are not followed, so that nothing outside the root is read and no loop is entered.
    Hidden files and folders, and what tools leave behind, are passed over without a word.

    Args:
        root: A folder, or one document, which is given whatever it is called.
        exclude: What else is passed over below the root.
    """
    if root.is_dir():
        yield from _in_folder(root, root, exclude)
    else:
        yield DocumentFile(root, root.name)


def document_at(
    root: Path, path: Path, *, exclude: Exclusion = NOTHING_EXCLUDED
) -> DocumentFile | None:
    """Give the document at a path below the root; None where it would not be read from there."""
    if not path.is_relative_to(root) or path == root:
        return DocumentFile(path, path.name) if path == root and path.is_file() else None
    parts = path.relative_to(root).parts
    if any(exclude.covers("/".join(parts[:count])) for count in range(1, len(parts) + 1)):
        return None
    folders = [root.joinpath(*parts[:count]) for count in range(1, len(parts))]
    if any(_is_excluded_folder(part) for part in parts[:-1]) or _is_excluded_file(parts[-1]):
        return None
    if any(place.is_symlink() for place in (*folders, path)) or not path.is_file():
        return None
    return DocumentFile(path, "/".join(parts)) if reader_for(path) else None


def _in_folder(root: Path, folder: Path, exclude: Exclusion) -> Iterator[Found]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        name = folder.relative_to(root).as_posix()
        yield name, Problem(f"the folder cannot be read ({error.strerror}). Check its rights.")
        return
    for entry in entries:
        path = Path(entry.path)
        if exclude.covers(path.relative_to(root).as_posix()):
            continue
        if entry.is_dir(follow_symlinks=False):
            if not _is_excluded_folder(entry.name):
                yield from _in_folder(root, path, exclude)
        elif not _is_excluded_file(entry.name) and (reader_for(path) or _links_to_folder(entry)):
            yield from _file(root, entry)


def _file(root: Path, entry: os.DirEntry[str]) -> Iterator[Found]:
    if entry.is_symlink():
        yield LeftOut("symbolic link")
    elif entry.is_file(follow_symlinks=False):
        path = Path(entry.path)
        yield DocumentFile(path, path.relative_to(root).as_posix())


def _links_to_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() and entry.is_dir()


def _is_excluded_folder(name: str) -> bool:
    return name.startswith(".") or name in _EXCLUDED_FOLDERS


def _is_excluded_file(name: str) -> bool:
    return name.startswith(".") or any(fnmatch(name, pattern) for pattern in _EXCLUDED_FILES)
