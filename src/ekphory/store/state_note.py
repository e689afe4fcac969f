"""What the newest state of a store was, noted beside its table: so damage and loss are seen.

Lance keeps no checksum of a manifest, and takes a folder without any for a table that is yet to be
made. The note holds the number of the newest version that was written, and a digest of its
manifest with the lists of deleted rows that it names.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from ekphory import legacy
from ekphory.errors import StoreError
from ekphory.store.manifest import data_files, manifest_of, manifests_in, names_deletions

STATE_FILE = ".ekphory.state.json"
_READ_ATTEMPTS = 5
_Note = tuple[int, str]


class StateNote:
    """Notes the newest state of one table, and checks what is on disk against it.

    A note may be older than the newest version: a process was killed between the two, or did not
    write one. It is never newer, unless versions were lost.
    """

    def __init__(self, table: Path) -> None:
        """Take the folder of a table, which need not be there yet."""
        self._table = table
        self._path = legacy.adopted(table.parent / STATE_FILE)
        self._digests: dict[str, bytes] = {}

    def write(self, version: int) -> None:
        """Note a version that was just written, and is durable whatever becomes of the note."""
        part = self._path.with_name(f"{STATE_FILE}.{os.getpid()}.{threading.get_ident()}")
        # Where it cannot be written, the earlier one stays and is true as well.
        with suppress(OSError):
            content = {"version": version, "digest": self._digest(version)}
            part.write_text(json.dumps(content) + "\n", encoding="utf-8")
            part.replace(self._path)

    def tidy(self) -> None:
        """Remove what writers left that were killed; the caller holds the writer's lock."""
        for part in self._path.parent.glob(f"{STATE_FILE}.*"):
            with suppress(OSError):
                part.unlink()

    def data_files(self, version: int) -> dict[int, str]:
        """Return the path of each fragment's data file below the store, by fragment number."""
        manifest = manifest_of(self._table, version).read_bytes()
        folder = f"{self._table.name}/data"
        return {number: f"{folder}/{name}" for number, name in data_files(manifest).items()}

    def check(self) -> None:
        """Check that the newest state is there, and as it was written.

        Raises:
            StoreError: It held something and the versions are gone, or the newest one is damaged.
        """
        for _ in range(_READ_ATTEMPTS):
            # Read before the versions are: what comes in between only makes those newer.
            noted = self._read()
            newest = self._newest()
            if newest is None:
                witness = self._witness(noted)
                # Another process may have made the table meanwhile, and written to it.
                if witness is None:
                    return
                if self._newest() is None:
                    raise self._emptied(witness)
                continue
            if noted is None or newest > noted[0]:
                return
            if newest < noted[0]:
                raise self._lost(noted[0], newest)
            with suppress(FileNotFoundError):
                if self._digest(newest) == noted[1]:
                    return
            # Another process may have written meanwhile, and removed what is not needed since.
            if self._read() == noted and self._newest() == newest:
                raise self._damaged(newest)

    def _newest(self) -> int | None:
        return max(manifests_in(self._table / "_versions"), default=None)

    def _witness(self, noted: _Note | None) -> Path | None:
        """Return a file that is only where something was written; None where nothing was."""
        if noted is not None:
            return self._path
        return next((path for path in self._table.glob("data/*") if path.is_file()), None)

    def _emptied(self, witness: Path) -> StoreError:
        return StoreError(
            f"{self._table / '_versions'}: holds no version of the table, though {witness} shows "
            "that the store held memories. Restore a backup with `ekphory restore`; to begin "
            f"anew, remove {self._table} and {self._path}."
        )

    def _lost(self, noted: int, newest: int) -> StoreError:
        return StoreError(
            f"{manifest_of(self._table, noted)}: is gone, so what was written after version "
            f"{newest} is lost. Restore a backup with `ekphory restore`; to go on with version "
            f"{newest}, remove {self._path}."
        )

    def _damaged(self, newest: int) -> StoreError:
        return StoreError(
            f"{manifest_of(self._table, newest)}: was damaged since it was written, or a list of "
            "deleted rows that it names was. Restore a backup with `ekphory restore`; to read "
            f"what can still be read, remove {self._path}."
        )

    def _read(self) -> _Note | None:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
            version, digest = content["version"], content["digest"]
            if type(version) is not int or not isinstance(digest, str):
                raise TypeError("version must be a number, and digest a string")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise StoreError(
                f"{self._path}: cannot be read ({error}). Remove it: the next write makes it anew. "
                "Then look for other damage with `ekphory doctor --verify`."
            ) from error
        return version, digest

    def _digest(self, version: int) -> str:
        manifest = manifest_of(self._table, version).read_bytes()
        whole = blake2b(manifest, digest_size=16)
        for name in names_deletions(self._table, manifest):
            if name not in self._digests:
                content = (self._table / "_deletions" / name).read_bytes()
                self._digests[name] = blake2b(content, digest_size=16).digest()
            whole.update(name.encode() + self._digests[name])
        return whole.hexdigest()
