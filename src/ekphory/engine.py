"""What all handles on one store share: the store, its writer, its snapshots, the embedder."""

from __future__ import annotations

import atexit
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ekphory.config import read_switch
from ekphory.detect import ChangeDetector
from ekphory.errors import InvalidInput, StoreError, StoreWarning
from ekphory.models.changes import BUNDLED, ChangeReader, bundled_change_reader
from ekphory.models.embedder import EmbedderIdentity, EmbeddingModel
from ekphory.retrieval.lexical import TERMS_VERSION
from ekphory.retrieval.snapshot import Snapshots
from ekphory.retrieval.stages.shape import PinnedRules
from ekphory.store import protocol
from ekphory.store.kept_arrays import KeptArrays
from ekphory.store.lance import TABLE_FOLDER, LanceStore
from ekphory.store.lance_table import never
from ekphory.store.ledger import LEDGER_FOLDER, Ledger, SnapshotLinks
from ekphory.store.writer import FencedLock, UpkeepState, Writer, make_lock
from ekphory.threads import ForkSafeLock, run_after_fork
from ekphory.types import Progress, is_storable


@dataclass(frozen=True, slots=True)
class Engine:
    """One open store in this process.

    Attributes:
        uri: Directory or Lance URI.
        store, writer, snapshots: Its parts.
        embedders: The models at hand, that of the first handle first.
        ledger: What was decided on which memory supersedes which.
        links: The ledger's decisions, by the rows of a snapshot.
        detector: Compares what was written with what was there.
        pinned: Which rules every search finds.
        spanned: URIs of the stores that it reads as one; empty where it is one itself.
        process: Id of the process that opened it; a fork has none of its threads.
    """

    uri: str
    store: protocol.Store
    writer: Writer
    snapshots: Snapshots
    embedders: dict[EmbedderIdentity, EmbeddingModel]
    ledger: Ledger
    links: SnapshotLinks
    detector: ChangeDetector
    pinned: PinnedRules
    spanned: tuple[str, ...] = ()
    process: int = field(default_factory=os.getpid)
    warned: set[EmbedderIdentity] = field(default_factory=set)

    @property
    def embedder(self) -> EmbeddingModel:
        """The model of the store's vectors, or the first one at hand where that is not."""
        first = next(iter(self.embedders.values()))
        return self.embedders.get(self.store.identity.embedder, first)

    @property
    def parts(self) -> tuple[str, ...]:
        """URIs of the stores that hold its memories."""
        return self.spanned or (self.uri,)

    def add_embedder(self, embedder: EmbeddingModel) -> None:
        """Have one more model at hand; warn, once, where none is that of the store's vectors."""
        self.embedders.setdefault(embedder.identity, embedder)
        self.warn_of_mismatch()

    def warn_of_mismatch(self) -> None:
        """Warn where the model of the store's vectors is not at hand, once for each such model."""
        stored = self.store.identity.embedder
        if stored not in self.embedders and stored not in self.warned:
            self.warned.add(stored)
            warnings.warn(
                f"{self.uri}: its vectors were made by {stored}, which is not at hand, and those "
                f"of {self.embedder.identity} cannot be compared with them. Searches go by words "
                "until `ekphory reembed` has made the vectors anew.",
                StoreWarning,
                stacklevel=5,
            )

    def health(self) -> protocol.StoreHealth:
        """Measure the whole store, and say whether its upkeep succeeds and its model is at hand."""
        failure = self.writer.upkeep_failure
        sentence = None if failure is None else failure.sentence
        health = self.store.health()
        in_use = self.embedder.identity
        foreign = None if in_use == self.store.identity.embedder else str(in_use)
        return replace(health, upkeep_failure=sentence, embedder_in_use=foreign)

    def verify(self, on_progress: Progress) -> protocol.Verification:
        """Compare every row with its checksum, and read the whole ledger of revisions."""
        found = self.store.verify(on_progress)
        try:
            for part in self.parts:
                Ledger(part).read()
        except StoreError as error:
            damage = protocol.Damage(LEDGER_FOLDER, (), 0, f"cannot be read ({error})")
            return replace(found, damage=(*found.damage, damage))
        return found


MakeEngine = Callable[[str, EmbeddingModel], Engine]

_open: dict[str, Engine] = {}
_handles: dict[str, int] = {}
_inherited: list[dict[str, Engine]] = []
_guard = ForkSafeLock()


def acquire(
    path: str | Path, embedder: EmbeddingModel, *, make: MakeEngine | None = None
) -> Engine:
    """Open the store at `path`, or join the handles that have it open already.

    A store whose vectors are of another model opens too, and warns.

    Args:
        path: A directory or a Lance URI.
        embedder: What its vectors are made with.
        make: Opens it where it is not open yet; None for `make_engine`.

    Raises:
        InvalidInput: `path` names no place for a store.
    """
    uri = _resolve(path)
    with _guard:
        if uri not in _open:
            _open[uri] = (make or make_engine)(uri, embedder)
        _handles[uri] = _handles.get(uri, 0) + 1
        engine = _open[uri]
    engine.add_embedder(embedder)
    return engine


def release(engine: Engine) -> None:
    """Let go of a handle; with the last one the writer ends and the store is closed."""
    if engine.process != os.getpid():
        return
    with _guard:
        _handles[engine.uri] -= 1
        if _handles[engine.uri]:
            return
        del _open[engine.uri], _handles[engine.uri]
    _close(engine)


def _forget_parents() -> None:
    """Open every store anew in a fork: the parent's writers have no threads here."""
    global _open
    # Kept alive: what their ends would give back belongs to the parent.
    _inherited.append(_open)
    _open = {}
    _handles.clear()


run_after_fork(_forget_parents)


@atexit.register
def _close_all() -> None:
    """Finish what open handles have queued: an end of Python amid a write of Lance is a crash."""
    with _guard:
        left = list(_open.values())
    for engine in left:
        _close(engine)


def _close(engine: Engine) -> None:
    engine.detector.close()
    # Before the writer's last upkeep, after which what is being kept would be of an old version.
    engine.snapshots.close()
    engine.writer.close()
    engine.store.close()


def make_engine(uri: str, embedder: EmbeddingModel, lock: FencedLock | None = None) -> Engine:
    """Open a store, and make it where there is none.

    Args:
        uri: A directory or a Lance URI.
        embedder: What its vectors are made with.
        lock: Who may write; None for the lock or lease of its place.
    """
    identity = protocol.StoreIdentity(protocol.SCHEMA_VERSION, TERMS_VERSION, embedder.identity)
    sole_writer = never if lock is None else lock.is_sole
    store = LanceStore.open(uri, identity, sole_writer=sole_writer)
    _check_terms(uri, store)
    ledger = Ledger(uri, connection=store.connection, sole_writer=sole_writer)
    if lock is not None:
        lock.tables += [store, ledger]
    upkeep = UpkeepState(None if "://" in uri else Path(uri))
    writer = Writer(store, lock or make_lock(uri), upkeep=upkeep)
    kept = None
    # Windows removes nothing that is open, so a purge would have to wait for every reader.
    if lock is None and "://" not in uri and os.name != "nt" and read_switch("KEEP_SNAPSHOTS"):
        kept = KeptArrays(Path(uri), table=TABLE_FOLDER)
    embedders = {embedder.identity: embedder}
    snapshots = Snapshots(store, embedders, kept=kept)
    engine = assemble(
        uri, embedders, snapshots=snapshots, writer=writer, ledger=ledger, reader=_find_reader()
    )
    if "://" not in uri:
        # What a crash left undone; on object storage it would take the lease from a writer.
        engine.detector.wake()
    return engine


def assemble(
    uri: str,
    embedders: dict[EmbedderIdentity, EmbeddingModel],
    *,
    snapshots: Snapshots,
    writer: Writer,
    ledger: Ledger,
    reader: Callable[[], ChangeReader] | None,
) -> Engine:
    """Return an open store of its parts; `reader` is that of `ChangeDetector`."""
    store, links = snapshots.store, SnapshotLinks(ledger)
    detector = ChangeDetector(store, writer, snapshots, ledger, reader=reader)
    pinned = PinnedRules(store.fetch)
    return Engine(uri, store, writer, snapshots, embedders, ledger, links, detector, pinned)


def _find_reader() -> Callable[[], ChangeReader] | None:
    is_there = BUNDLED.is_dir() and read_switch("DETECT_CHANGES")
    return bundled_change_reader if is_there else None


def _check_terms(uri: str, store: protocol.Store) -> None:
    if store.identity.terms_version != TERMS_VERSION:
        raise StoreError(
            f"{uri}: its terms were made by version {store.identity.terms_version} of the "
            f"tokenizer, this ekphory has {TERMS_VERSION}. Import the memories into a new store."
        )


def _resolve(path: str | Path) -> str:
    if not isinstance(path, str | Path) or not str(path).strip():
        raise InvalidInput("path", path, "names no store", "Give a directory or a Lance URI")
    text = str(path).removeprefix("file://")
    if not is_storable(text):
        raise InvalidInput("path", path, "holds NUL, which no file name can", "Remove it")
    return text if "://" in text else str(Path(text).expanduser().resolve())
