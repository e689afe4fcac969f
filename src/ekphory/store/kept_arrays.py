"""Arrays that were derived from a store, kept in its directory for the next process.

They can be derived again at any time, so they are nobody's only copy: what is damaged, of another
table or of another ekphory is passed over. A set of them is there whole or not at all, and is only
added while the version that it was derived from is the newest one; a purge removes all of them.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ekphory import __version__
from ekphory.atomic_write import sync_file
from ekphory.errors import StoreError
from ekphory.store.lance_table import find_manifest
from ekphory.store.writer import DirectoryLock

FOLDER = ".ekphory.snapshots"
_FACTS = "facts.json"
_FORMAT = 1
_MOST_SETS = 16
"""Of so many scopes arrays are kept, those that were used last."""
_PART, _PART_SECONDS = ".part", 3600.0
"""How what is being written is called, and after how long nobody writes it any more."""
_GONE = ".gone"
_DAMAGED = (OSError, ValueError, KeyError, TypeError, SyntaxError, TokenError, OverflowError)
"""What reading raises of JSON or an array's header that is not what was written."""
_log = logging.getLogger("ekphory")

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class ArraySet:
    """Arrays that were derived from one version of a store.

    Attributes:
        version: Number of the version.
        arrays: By name, mapped from the files: what is not used is not read.
        is_proven: Whether the commit that made the version is still there, and is the same one.
            It is removed a while after others followed.
    """

    version: int
    arrays: Mapping[str, Array]
    is_proven: bool


class KeptArrays:
    """Sets of arrays beside the table of a store in a directory. Safe for several processes."""

    def __init__(self, directory: Path, *, table: str) -> None:
        """Take a store's directory, and the name of the folder of its table there."""
        self._table = directory / table
        self._folder = directory / FOLDER
        self._lock = DirectoryLock(directory)

    def read(self, subject: str, *, newest: int) -> ArraySet | None:
        """Return the newest set of arrays about a subject; None where there is none to be trusted.

        Args:
            subject: What they are of; a set of another subject is never returned.
            newest: Number of the store's newest version.
        """
        for version, folder in self._sets_of(subject):
            if version > newest:
                continue
            try:
                found = self._read_set(folder, version, subject)
            except FileNotFoundError:
                continue  # another process has replaced it just now
            except _DAMAGED as error:
                _log.warning("%s: cannot be read (%s), and is made anew", folder, error)
                continue
            if found is not None:
                with suppress(OSError):  # where the store may only be read
                    os.utime(folder)
                return found
        return None

    def _read_set(self, folder: Path, version: int, subject: str) -> ArraySet | None:
        facts = json.loads((folder / _FACTS).read_text("utf-8"))
        arrays = {
            path.stem: np.asarray(np.lib.format.open_memmap(path, mode="r"))
            for path in folder.glob("*.npy")
        }
        commit = self._digest_of_commit(version)
        is_same = facts["subject"] == subject and set(arrays) == set(facts["arrays"])
        if not is_same or commit not in (None, facts["commit"]):
            return None
        return ArraySet(version, arrays, is_proven=commit is not None)

    def add(
        self,
        subject: str,
        arrays: Mapping[str, Sequence[Array]],
        *,
        version: int,
        is_newest: Callable[[int], bool],
    ) -> bool:
        """Keep arrays about a subject in the place of earlier ones.

        Args:
            subject: What they are of.
            arrays: The parts of each, which are joined.
            version: The store's version that they were derived from.
            is_newest: Says whether a version is the newest one.

        Returns:
            Whether they are kept: not where the store has moved on.

        Raises:
            StoreError: The directory cannot be written.
        """
        place = self._folder / f"{_name(subject)}-{version}"
        part = place.with_name(f"{place.name}.{secrets.token_hex(8)}{_PART}")
        try:
            with self._lock.held():
                if not is_newest(version):
                    return False
                # From here on a purge removes this folder too.
                part.mkdir(parents=True)
                commit = self._digest_of_commit(version)
            for name, parts in arrays.items():
                _save(part / f"{name}.npy", parts)
            told = {"subject": subject, "commit": commit, "arrays": list(arrays)}
            with (part / _FACTS).open("w", encoding="utf-8") as stream:
                json.dump(told, stream)
                sync_file(stream)
            with self._lock.held():
                if not part.is_dir():
                    return False
                # One of the same version was passed over, or it would not be made again.
                if place.exists():
                    shutil.rmtree(place)
                part.rename(place)
                self._drop_others(place)
            return True
        except OSError as error:
            raise StoreError(f"{part}: cannot be written ({error})") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def clear(self) -> None:
        """Remove all sets; the caller holds the writer's lock.

        Raises:
            StoreError: A file cannot be removed.
        """
        try:
            if self._folder.is_dir():
                # Under another name, so that nobody goes on writing into it meanwhile.
                gone = self._folder.with_name(f"{FOLDER}.{secrets.token_hex(8)}{_GONE}")
                self._folder.rename(gone)
            for gone in self._folder.parent.glob(f"{FOLDER}.*{_GONE}"):
                shutil.rmtree(gone)
        except OSError as error:
            raise StoreError(
                f"{error.filename}: cannot be removed ({error.strerror}). Check the permissions of "
                "the store's folder, and repeat."
            ) from error

    def _drop_others(self, place: Path) -> None:
        """Remove earlier sets of the same subject, those used least, and what a crash left."""
        subject, oldest = place.name.partition("-")[0], time.time() - _PART_SECONDS
        used = {path: path.stat().st_mtime for path in self._folder.iterdir()}
        sets = sorted((each for each in used if each.suffix != _PART), key=lambda each: used[each])
        dropped = [each for each in used if each.suffix == _PART and used[each] < oldest]
        dropped += [each for each in sets if each.name.startswith(f"{subject}-") and each != place]
        for path in {*dropped, *sets[:-_MOST_SETS]}:
            # What cannot be removed now goes the next time.
            shutil.rmtree(path, ignore_errors=True)

    def _sets_of(self, subject: str) -> list[tuple[int, Path]]:
        """Return the version and folder of each set that may be about a subject, newest first."""
        found = self._folder.glob(f"{_name(subject)}-*")
        named = ((path.name.partition("-")[2], path) for path in found)
        numbers = ((int(number), path) for number, path in named if number.isdecimal())
        return sorted(numbers, reverse=True)

    def _digest_of_commit(self, version: int) -> str | None:
        try:
            content = find_manifest(self._table, version).read_bytes()
        except FileNotFoundError:
            return None
        return blake2b(content, digest_size=16).hexdigest()


def _name(subject: str) -> str:
    made_by = json.dumps([_FORMAT, __version__, subject])
    return blake2b(made_by.encode(), digest_size=12).hexdigest()


def _save(path: Path, parts: Sequence[Array]) -> None:
    """Write the joined parts, without joining them in memory."""
    first = parts[0]
    shape = (sum(len(part) for part in parts), *first.shape[1:])
    kind = max((part.dtype for part in parts), key=lambda dtype: dtype.itemsize)
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with path.open("wb") as stream:
        np.lib.format.write_array_header_2_0(stream, header)
        for part in parts:
            stream.write(np.ascontiguousarray(part, kind).data)
        sync_file(stream)
