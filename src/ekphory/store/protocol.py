"""What a store is: the protocol that every backend follows, and the rows it keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import StoreError
from ekphory.filters.tree import Field, Filter, IsNull
from ekphory.models.embedder import EmbedderIdentity, FloatMatrix
from ekphory.types import MemoryRecord, Progress

SCHEMA_VERSION = 4
KEYS_A_COMMIT = 2**20
"""Most rows in one commit; keys are numbered from the commit's version times this."""
RESIDENT_ROWS = 120_000
"""A scope of up to this many memories is searched exactly, over vectors in memory; a larger one
through the store's index."""
Precision = type[np.float32] | type[np.float16]
"""In which precision vectors are held in memory; on disk they have 32 bits."""
NEVER = np.iinfo(np.int64).max
"""`expires_at` in microseconds of a memory that is kept for good."""

NO_THREAD = 0
"""Thread of a memory that has neither a session nor a sequence: it has no neighbours."""

CURRENT: Filter = IsNull(Field("superseded_by"))
"""Holds for memories that no later version supersedes."""

IntArray = NDArray[np.int64]
ScoreArray = NDArray[np.float32]
Order = Literal["newest", "oldest", "written"]


def first_key(*, after: int) -> int:
    """Return the first of `KEYS_A_COMMIT` keys that no row has or ever had.

    Args:
        after: Number of the version that the next commit follows, read by the one who may write
            since nobody else may; no store gives a number twice.
    """
    return (after + 1) * KEYS_A_COMMIT


def version_key(*, after: int, noted: int) -> int:
    """Return a key for the new version of a memory, which is noted before it is written.

    Where the write fails after the note, no later write is given this key: those of memories that
    are added lie below half of a commit's, and `noted` is another one at the next attempt.

    Args:
        after: As `first_key` takes it.
        noted: Number of the ledger's version, to which each note adds.
    """
    half = KEYS_A_COMMIT // 2
    return first_key(after=after) + half + noted % half


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """What is bound to a store when it is made, and checked whenever it is opened.

    Attributes:
        schema_version, terms_version: How rows are laid out, and how terms were made of texts.
        embedder: The model that made the vectors.
        previous: The one that made those before them; None where they were never replaced.
        generation: How often vectors were replaced.
    """

    schema_version: int
    terms_version: str
    embedder: EmbedderIdentity
    previous: EmbedderIdentity | None = None
    generation: int = 0


class VectorsReplaced(StoreError):
    """The store's vectors were replaced while they were being read; read anew."""


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """One memory with all that is derived from it, ready to be written.

    Attributes:
        key: Number of the row in this store, growing with every write.
        record: The memory.
        thread: Number of its session within its scope; neighbours share it, 0 has none.
        terms: Hashed terms of the indexed text.
        vectors: One row for each window of the indexed text, shape (windows, dimension); one of
            zeros where the store's model was not at hand, so that words alone find the memory.
        fingerprint: Digest that identifies a memory whose id is ours; None for a caller's id.
    """

    key: int
    record: MemoryRecord
    thread: int
    terms: NDArray[np.uint32]
    vectors: FloatMatrix
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Presence:
    """What tells whether a record is stored already.

    Attributes:
        id: The memory's id; for an earlier version, that of the memory it is a version of.
        fingerprint: What identifies a record without an id.
        owner: Its org, project, agent and user.
        expires_at: Microseconds since 1970, `NEVER` where it does not expire.
        is_history: Whether it is an earlier version, whose memory may expire at another time.
    """

    key: int
    id: str
    fingerprint: str | None
    owner: tuple[str | None, ...]
    expires_at: int
    is_history: bool = False


@dataclass(frozen=True, slots=True)
class ScopeColumns:
    """What ranking needs of the current memories of a scope, by row, in the order of keys.

    Attributes:
        key, thread, sequence: As in `StoredMemory` and `MemoryRecord`.
        at, expires_at: Microseconds since 1970; `NEVER` where it does not expire.
        importance: In [0, 1].
        importance_given: Whether the caller gave it, or did not get one that a model predicted.
        pool, type: Names.
        terms: The terms of all rows, one row after another.
        term_counts: Number of terms of each row.
    """

    key: IntArray
    thread: IntArray
    sequence: IntArray
    at: IntArray
    expires_at: IntArray
    importance: NDArray[np.float32]
    importance_given: NDArray[np.bool_]
    pool: NDArray[np.str_]
    type: NDArray[np.str_]
    terms: NDArray[np.uint32]
    term_counts: NDArray[np.int32]


class KeyedBlock(Protocol):
    """Rows held as columns."""

    @property
    def keys(self) -> IntArray:
        """Keys of the rows, ascending."""

    @property
    def nbytes(self) -> int:
        """Memory that they take, in bytes."""


class RecordBlock(KeyedBlock, Protocol):
    """Whole memories held as columns."""

    def at(self, places: IntArray) -> list[MemoryRecord]:
        """Return the memories at these places among the keys, in order."""

    def without(self, keys: IntArray) -> RecordBlock:
        """Return the block without the memories that have these keys, and without their text."""


@dataclass(frozen=True, slots=True)
class KeyedVectors:
    """Vectors with the key of the memory that each belongs to; several may share a key."""

    keys: IntArray
    vectors: NDArray[np.floating]

    @property
    def nbytes(self) -> int:
        """Memory that they take, in bytes."""
        return self.keys.nbytes + self.vectors.nbytes


@dataclass(frozen=True, slots=True)
class WholeScope:
    """All that is read of the current memories of a scope.

    Attributes:
        columns, vectors, records: As `Store.scan`, `scan_vectors` and `scan_records` give them.
    """

    columns: ScopeColumns
    vectors: KeyedVectors
    records: RecordBlock


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """What `ekphory doctor` reports of a store.

    Attributes:
        memories: Current memories in all scopes.
        history: Superseded versions.
        vectors: Rows with a vector (a long memory has several).
        fragments, small_fragments: Data files, and those worth merging.
        versions: Versions kept on disk.
        bytes: Size on disk; None where the store is not a local directory.
        vector_index_rows: Rows covered by the vector index; None without one.
        orphaned_scopes: Scopes that hold nothing but history or expired memories.
        upkeep_failure: Upkeep that fails, in a sentence; None if all is well.
        embedder: The model that made the vectors.
        embedder_in_use: The model that the store was opened with, where it is not at hand.
        unembedded: Memories without a vector, and earlier versions of some.
        previous_embedder: The model before, where its vectors are kept.
        next_embedders: Models with which making vectors anew has begun and not ended.
    """

    memories: int
    history: int
    vectors: int
    fragments: int
    small_fragments: int
    versions: int
    bytes: int | None
    vector_index_rows: int | None
    orphaned_scopes: tuple[str, ...]
    upkeep_failure: str | None = None
    embedder: str = ""
    embedder_in_use: str | None = None
    unembedded: int = 0
    previous_embedder: str | None = None
    next_embedders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Damage:
    """What is damaged in one file.

    Attributes:
        file: Its path below the store's directory; None where it cannot be told.
        ids: The memories whose rows are damaged, as far as their ids can be read.
        rows: How many rows those are.
        problem: What is wrong, in words.
    """

    file: str | None
    ids: tuple[str, ...]
    rows: int
    problem: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What reading all rows found.

    Attributes:
        rows: How many there are; a long memory has several.
        unverified: How many of them have no checksum, as they were written by an earlier version.
        damage: What is damaged; empty if all is well.
    """

    rows: int
    unverified: int
    damage: tuple[Damage, ...]


@dataclass(frozen=True, slots=True)
class Growth:
    """What was added to a table between two versions, while nothing else was changed.

    Attributes:
        version: The later version.
        memories: Those added, in the order of keys.
    """

    version: int
    memories: tuple[StoredMemory, ...]


class Store(Protocol):
    """Keeps memories durably. Reads may come from several threads, writes from one.

    Every read takes a condition; the callers combine it with their scope's predicate.
    `current` memories are those that no later version supersedes.
    """

    @property
    def identity(self) -> StoreIdentity:
        """What the store was made with, as far as `version` saw or changed it."""

    def version(self) -> int:
        """Return the number of the newest durable state; every write by any process changes it."""

    def append(self, memories: Sequence[StoredMemory]) -> None:
        """Write new rows in one atomic commit; on return they are durable."""

    def supersede(self, key: int, history: MemoryRecord, successor: StoredMemory) -> None:
        """Refile the row `key` as `history` and write its successor, in one atomic commit."""

    def delete(self, keys: Sequence[int]) -> None:
        """Hide these memories at once; a key that is gone is passed over."""

    def purge(self) -> None:
        """Rewrite the data, so that no byte of a deleted memory is left on disk."""

    def select(
        self, where: Filter, *, order: Order, limit: int | None = None, offset: int = 0
    ) -> list[MemoryRecord]:
        """Read whole memories, history included."""

    def fetch(self, keys: Sequence[int]) -> dict[int, MemoryRecord]:
        """Read whole memories by key; a key that is gone is left out."""

    def present(
        self, where: Filter, ids: Sequence[str], fingerprints: Sequence[str]
    ) -> list[Presence]:
        """Return which of these are stored among the matching memories.

        Ids are looked for among current memories, fingerprints among earlier versions as well: a
        record that was written and then changed is not written again.
        """

    def keys(self, where: Filter) -> IntArray:
        """Return the keys of the matching memories, history included, ascending."""

    def count(self, where: Filter) -> int:
        """Return how many memories match, history included."""

    def growth_since(self, version: int) -> Growth | None:
        """Return what was added to that version; None where that is unknown, or not all."""

    def scan(self, where: Filter, *, after_key: int = 0) -> ScopeColumns:
        """Read the ranking columns of the current matching memories with larger keys."""

    def scan_fields(self, where: Filter, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read some fields of the current matching memories, by name, in the order of keys.

        A text that is missing is empty; moments are microseconds since 1970.

        Args:
            where: Which memories.
            names: Of scope fields, pool, type, source, importance and moments; `metadata` is the
                text that `encode_metadata` gives. `key` is given too.
        """

    def scan_vectors(
        self, where: Filter, *, after_key: int = 0, precision: Precision = np.float32
    ) -> KeyedVectors:
        """Read the vectors of the current matching memories with larger keys.

        Keys ascend, and the windows of one memory stand in the order of its text.

        `where` may name scope fields, pool and `superseded_by` only, here and in `nearest`.
        """

    def scan_records(self, where: Filter, *, after_key: int = 0) -> RecordBlock:
        """Read the current matching memories with larger keys, whole."""

    def scan_whole(self, where: Filter, *, room: int) -> WholeScope | None:
        """Read the current matching memories with all that a search needs, where that pays.

        Args:
            where: As `scan_vectors` takes it.
            room: Bytes that may be held of them.

        Returns:
            None where they are better read in parts: nothing is saved by reading them at once, or
            they may not have room.
        """

    def vectors_of(self, keys: Sequence[int]) -> KeyedVectors:
        """Read the vectors of some memories; the windows of one in the order of its text."""

    def lacking(self, embedder: EmbedderIdentity) -> IntArray:
        """Return the keys of all memories of which the store has no vector by that model."""

    def keep_vectors(self, embedder: EmbedderIdentity, vectors: Mapping[int, FloatMatrix]) -> None:
        """Keep vectors of a model beside the store's own, by key, but none of what is gone."""

    def switch_vectors(self, embedder: EmbedderIdentity) -> None:
        """Put a model's vectors in the place of the store's own, in one atomic commit.

        The own ones are kept beside, where they are of another model. A memory without a vector by
        that model gets one of zeros.
        """

    def drop_previous_vectors(self) -> None:
        """Remove the vectors that are kept beside of the model before."""

    def nearest(self, where: Filter, vector: NDArray[np.float32], *, limit: int) -> IntArray:
        """Find the windows with the largest dot product among those that match.

        Returns:
            Their keys in no order, history included; a memory comes once for each of its windows.
            Approximate where an index serves it: ask for more, and score them.
        """

    def note_newest(self) -> None:
        """Note beside the data what was written last, so that its loss is seen when it is opened.

        Called when a write is acknowledged already, which is durable without it.
        """

    def upkeep_is_due(self) -> bool:
        """Return whether enough was written for `maintain` to look; asked after every write."""

    def maintain(self) -> None:
        """Merge small files and drop old versions, where policy asks for it; takes seconds."""

    def tidy(self) -> None:
        """Do the same for less reason, since nothing else is being written; takes seconds."""

    def index_is_due(self) -> bool:
        """Return whether policy asks for a new vector index."""

    def build_index(self) -> None:
        """Build the vector index, if it is due; takes up to minutes.

        The only write that may run beside others, by this process or another.
        """

    def repair(self) -> None:
        """Do all maintenance now, whatever the policy says."""

    def health(self) -> StoreHealth:
        """Measure the state of the store."""

    def verify(self, on_progress: Progress) -> Verification:
        """Read every row, and compare it with its checksum.

        Args:
            on_progress: Told how many rows were read, and of how many.
        """

    def close(self) -> None:
        """Release what the store holds; further calls are undefined."""
