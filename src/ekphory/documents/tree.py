"""The documents below a folder: which are read, by which reader, and again when they change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePath

from ekphory.documents import blocks
from ekphory.documents.html import read_html
from ekphory.documents.pdf import read_pdf
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.source_code import CODE_MODULES, CODE_SUFFIXES, read_source_code
from ekphory.documents.text import read_markdown, read_plain_text, read_restructured_text
from ekphory.documents.word import read_word
from ekphory.errors import MissingExtra

MARKDOWN = "Markdown"
DOCUMENT_POOL = "reference_library"
"""What a whole project looks things up in."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How one kind of file is read.

    Attributes:
        name: The kind, for people.
        suffixes: Ends of the names of such files, in lower case.
        unit: What places in it are counted in.
        read: Gives its blocks in order.
        needs: Names of modules that its extra installs.
        extra: The extra.
        pool: Where its passages go, unless another pool is named.
        version: Raised when they are read or cut in another way, so that they are read anew.
    """

    name: str
    suffixes: tuple[str, ...]
    unit: blocks.Unit
    read: Callable[[Path, ReadingSettings], Iterator[blocks.Read]]
    needs: tuple[str, ...] = ()
    extra: str = "docs"
    pool: str = DOCUMENT_POOL
    version: int = 1

    def missing_extra(self) -> MissingExtra | None:
        """Return the error of a reader whose modules are not installed."""
        if all(map(_find_spec, self.needs)):
            return None
        return MissingExtra(self.extra, f"Reading {self.name} files")


_find_spec = cache(find_spec)


_CODE = Reader("source code", CODE_SUFFIXES, "line", read_source_code, CODE_MODULES)
SOURCE_CODE = replace(_CODE, extra="code", pool="reference_code", version=2)
_MARKDOWN_MODULES = ("markdown_it", "yaml")
READERS = (
    Reader(MARKDOWN, (".md", ".markdown"), "line", read_markdown, _MARKDOWN_MODULES, version=5),
    Reader("text", (".txt",), "line", read_plain_text),
    Reader("reStructuredText", (".rst",), "line", read_restructured_text),
    Reader("PDF", (".pdf",), "page", read_pdf, ("pypdfium2",)),
    Reader("Word", (".docx",), "paragraph", read_word, ("docx", "lxml")),
    Reader("HTML", (".html", ".htm"), "line", read_html, ("lxml",)),
    SOURCE_CODE,
)
_BY_SUFFIX = {suffix: reader for reader in READERS for suffix in reader.suffixes}
DOCUMENT_SUFFIXES = tuple(_BY_SUFFIX)


def find_reader(path: Path) -> Reader | None:
    """Return the reader of a file, by the end of its name; None for what is not a document."""
    return _BY_SUFFIX.get(path.suffix.lower())


UNREAD = {
    each: blocks.SkippedPart(f"{each.name} (pip install 'ekphory[{each.extra}]' reads it)")
    for each in READERS
}
"""What is said of documents whose reader lacks its extra."""


def is_unread_code(path: Path) -> bool:
    """Whether a file is source code that would be read if `[code]` were installed."""
    return find_reader(path) is SOURCE_CODE and SOURCE_CODE.missing_extra() is not None


def watch_changes(root: Path, *, stopped: Callable[[], bool] | None = None) -> Generator[set[Path]]:
    """Yield the paths that changed, in rounds; the first, often empty, when the watch has begun.

    What changes while a round is worked on is reported in the next one, so nothing is missed. Where
    the folder that is watched goes, and where it is there again, it is itself what changed.

    Args:
        root: A folder or a file.
        stopped: Ends the watch when it says so; asked about twice a second. None watches for ever.

    Raises:
        MissingExtra: `[docs]` is not installed.
    """
    is_over = stopped or (lambda: False)
    # A file is watched through its folder: editors replace it by another one.
    watched = root if root.is_dir() else root.parent
    yield from _watch_one(watched, is_over)
    while not is_over():
        if watched.exists():
            begun = _watch_one(watched, is_over)
            yield next(begun) | {watched}
            yield from begun
        else:
            yield {watched}
            while not (is_over() or watched.exists()):
                time.sleep(_LOOK_AGAIN_SECONDS)


def _watch_one(folder: Path, is_over: Callable[[], bool]) -> Generator[set[Path]]:
    """Yield what changes in a folder until it is gone, or another one is in its place."""
    with blocks.from_docs_extra("Watching a folder"):
        from watchfiles import watch
    known = _identify(folder)
    rounds = watch(folder, watch_filter=None, debounce=400, rust_timeout=500, yield_on_timeout=True)
    with closing(rounds):
        yield {Path(path) for _, path in next(rounds)}
        for changes in rounds:
            changed = {Path(path) for _, path in changes}
            if is_over() or folder in changed or _identify(folder) != known:
                return
            if changed:
                yield changed


_LOOK_AGAIN_SECONDS = 0.5
"""So often it is looked whether a folder that is gone is there again."""


def _identify(folder: Path) -> tuple[int, int] | None:
    """Return what tells a folder from another one in its place; None where there is none."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


FAILURES_FOLDER = "ekphory-failed"
"""Where imports list what they refused."""
_EXCLUDED_FOLDERS = (FAILURES_FOLDER, "node_modules", "__pycache__", "site-packages", "venv")
_EXCLUDED_FILES = ("*.bak", "*~", "~$*", "*.min.js")


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A document that may be read.

    Attributes:
        path: Where it lies.
        name: Its path below the root, with `/`; the name alone where the root is the file.
    """

    path: Path
    name: str


Found = DocumentFile | blocks.SkippedPart | tuple[str, blocks.Problem]
"""A document, what is not read with its reason, or a place with what keeps it from being read."""


def find_documents(
    root: Path, *, exclude: blocks.Exclusion = blocks.NOTHING_EXCLUDED
) -> Iterator[Found]:
    """Return the documents at a path, in the order of their names.

    Links are not followed, so that nothing outside the root is read and no loop is entered.
    Hidden files and folders, and what tools leave behind, are passed over without a word.

    Args:
        root: A folder, or one document, which is given whatever it is called.
        exclude: What else is passed over below the root.
    """
    if root.is_dir():
        yield from _find_in_folder(root, root, exclude)
    else:
        yield _read_or_pass_over(root, root.name)


def find_document(
    root: Path, path: Path, *, exclude: blocks.Exclusion = blocks.NOTHING_EXCLUDED
) -> DocumentFile | None:
    """Return the document at a path below the root; None where it would not be read from there."""
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
    found = _read_or_pass_over(path, "/".join(parts))
    return found if isinstance(found, DocumentFile) else None


def _find_in_folder(root: Path, folder: Path, exclude: blocks.Exclusion) -> Iterator[Found]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        problem = f"the folder cannot be read ({error.strerror}). Check its rights."
        yield folder.relative_to(root).as_posix(), blocks.Problem(problem)
        return
    for entry in entries:
        path = Path(entry.path)
        if exclude.covers(path.relative_to(root).as_posix()):
            continue
        if entry.is_dir(follow_symlinks=False):
            if not _is_excluded_folder(entry.name):
                yield from _find_in_folder(root, path, exclude)
        elif _is_excluded_file(entry.name):
            continue
        elif entry.is_symlink():
            yield blocks.SkippedPart("symbolic link")
        elif entry.is_file(follow_symlinks=False):
            yield _read_or_pass_over(path, path.relative_to(root).as_posix())


def _read_or_pass_over(path: Path, name: str) -> DocumentFile | blocks.SkippedPart:
    reader = find_reader(path)
    if reader is None:
        return blocks.SkippedPart(describe_other_kind(path))
    if reader is SOURCE_CODE and "dist" in PurePath(name).parts[:-1]:
        return blocks.SkippedPart("source code that a build made (dist/)")
    return UNREAD[reader] if reader.missing_extra() else DocumentFile(path, name)


def describe_other_kind(path: PurePath) -> str:
    """Say of a file that no reader knows what kind it is of."""
    return f"file of another kind ({path.suffix.lower() or 'no suffix'})"


def _is_excluded_folder(name: str) -> bool:
    return name.startswith(".") or name in _EXCLUDED_FOLDERS


def _is_excluded_file(name: str) -> bool:
    return name.startswith(".") or any(fnmatch(name, pattern) for pattern in _EXCLUDED_FILES)
