"""Handles on one store, each bound to its scope, and the models that they share."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import quote

import numpy as np

from ekphory.config import Settings
from ekphory.engine import Engine, acquire, release
from ekphory.errors import EkphoryError, InvalidInput
from ekphory.memory import Memory
from ekphory.models import loading
from ekphory.models.chat import Chat
from ekphory.models.embedder import EmbeddingModel, FloatMatrix
from ekphory.models.reranker import RerankingModel, RerankPassage, RerankQuery, bundled_reranker
from ekphory.recorded_searches import RecordedIn, RecordedSearches, Surface
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import BALANCED, preset
from ekphory.retrieval.stages.rerank import score_relevance
from ekphory.scope import DEFAULT_NAME, Scope
from ekphory.store.protocol import CURRENT, StoreHealth

FEATURES = "/semantic"
"""How the scope of a project's features ends; a project's own name must not."""
Reach = Literal["project", "org"]
"""How far changes may go: to the project alone, or to what its whole organisation shares."""


@dataclass(frozen=True, slots=True)
class Place:
    """A project of an organisation, and how far changes from there may go."""

    org: str
    project: str
    reach: Reach = "org"

    @property
    def session_key(self) -> str:
        """Both names as MemMachine joins them."""
        return f"{self.org}/{self.project}"

    @property
    def owner(self) -> tuple[str, str]:
        """Organisation and project, as the catalog names owners."""
        return self.org, self.project


# Where a store's catalog lies.

CATALOG_FILE = "catalog.sqlite3"


def catalog_file(store: str | Path, given: Path | None = None) -> Path:
    """Return the file of a store's catalog: the one that is given, or one in its directory.

    Raises:
        InvalidInput: The store is on object storage, where no such file can be.
    """
    if given is not None:
        return given.expanduser()
    name = str(store).removeprefix("file://")
    if "://" in name:
        problem = "must have a directory for the catalog of projects and keys"
        raise InvalidInput("store", name, problem, "Name a local file with --catalog")
    return Path(name).expanduser() / CATALOG_FILE


# The models that a service holds, loaded once and shared by all scopes.

Purpose = Literal["query", "passage"]
"""What a text is embedded as: models may prompt the two differently."""
DEFAULT_NAMES = ("", "default")
"""Names by which a caller asks for whatever the service has."""


class NotConfigured(EkphoryError):
    """What is asked for needs a model that this service was started without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceModels:
    """The models of one service.

    Attributes:
        embedder: Embeds memories and queries.
        reranker, chat: Used by the presets that want one; None where there is none.
        preset: The pipeline of searches that name none.
    """

    embedder: EmbeddingModel
    reranker: RerankingModel | None = None
    chat: Chat | None = None
    preset: Pipeline = BALANCED

    @property
    def embedder_name(self) -> str:
        """What the embedder is called."""
        return self.embedder.identity.name

    @property
    def reranker_name(self) -> str:
        """What the reranker is called; empty where there is none."""
        return "" if self.reranker is None else self.reranker.name

    def rerank(self, query: RerankQuery, passages: Sequence[RerankPassage]) -> list[float]:
        """Score passages in [0, 1], in the order given.

        Raises:
            NotConfigured: There is no reranker.
            ServiceError: A remote reranker failed.
        """
        if self.reranker is None:
            raise NotConfigured(
                "No reranker is configured. Start the server with EKPHORY_RERANKER set to a "
                "model's directory or a service's URL."
            )
        scores = score_relevance(self.reranker, query, passages, seconds=None)
        return [float(score) for score in scores]

    def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatMatrix:
        """Embed texts; returns shape (len(texts), dimension), rows of length 1.

        A passage that is longer than the model reads is embedded in parts, and their mean is taken:
        nothing of it is left out.
        """
        if purpose == "query":
            return self.embedder.encode_query(texts)
        return _mean_of_windows(self.embedder, texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModels:
    """Models that take the place of a service's own for some memories.

    Attributes:
        embedder: None for the service's own.
        folder: What the store of that embedder's vectors is called; empty for the main store.
        reranker: None for the service's own.
    """

    embedder: EmbeddingModel | None = None
    folder: str = ""
    reranker: RerankingModel | None = None


OWN_MODELS = ChosenModels()


class ModelChoice(Protocol):
    """Says which models are used for what."""

    def of_project(self, place: Place) -> ChosenModels:
        """Return the models of a project."""

    def chosen(self, embedder: str, reranker: str = "") -> ChosenModels:
        """Return models by their names."""


def load_models(settings: Settings) -> ServiceModels:
    """Load what the settings name.

    Raises:
        InvalidInput: A model or the preset cannot be what is named.
        ModelError: A model cannot be loaded.
    """
    return ServiceModels(
        preset=preset(settings.preset),
        embedder=loading.load_configured_embedder(settings) or loading.load_embedder(),
        reranker=loading.load_configured_reranker(settings),
        chat=loading.load_configured_chat(settings),
    )


def shorten_vectors(vectors: FloatMatrix, dimensions: int) -> FloatMatrix:
    """Keep the first components, and make every row of length 1 again."""
    kept = vectors[:, :dimensions]
    lengths = np.linalg.norm(kept, axis=1, keepdims=True)
    return np.asarray(kept / np.where(lengths > 0, lengths, 1), np.float32)


def _mean_of_windows(embedder: EmbeddingModel, texts: Sequence[str]) -> FloatMatrix:
    windows = [embedder.windows(text) for text in texts]
    vectors = embedder.encode([window for parts in windows for window in parts])
    if len(vectors) == len(texts):
        return vectors
    ends = np.cumsum([len(parts) for parts in windows])[:-1]
    means = np.array([part.mean(axis=0) for part in np.split(vectors, ends)])
    return shorten_vectors(means, means.shape[1])


# Handles on one store.


EMBEDDERS_FOLDER = "embedders"
"""Where, in a store's directory, the stores of other embedders' vectors lie, each by its name."""


def features_scope(org: str, project: str | None) -> Scope:
    """Return the scope of the features of a project's sets, or of its organisation's own."""
    return Scope(org=org, project=(project or "") + FEATURES)


class Handles:
    """Opens handles on one store, which stays open as long as this does.

    A handle costs microseconds: all of them share the store, its writer and its snapshots. A store
    holds vectors of one embedder; memories of another lie in a store of their own inside of it.
    """

    def __init__(
        self, store: str | Path, models: ServiceModels, choice: ModelChoice | None = None
    ) -> None:
        self._store = store
        self._models = models
        self._choice = choice
        # To a handle, no reranker means the bundled one.
        self._reranker = models.reranker or (bundled_reranker() and "none")
        self._keeping_open = {"": Memory(store, embedder=models.embedder)}
        self._embedders: dict[str, EmbeddingModel | None] = {}
        self._opening = threading.Lock()

    def open(
        self, scope: Scope, *, surface: Surface | None = None, chosen: ChosenModels = OWN_MODELS
    ) -> Memory:
        """Open a handle on a scope, to be closed after use; its searches come from `surface`."""
        models = self._models
        memory = Memory(
            self._keep_open(chosen),
            **asdict(scope),
            embedder=chosen.embedder or models.embedder,
            reranker=chosen.reranker or self._reranker,
            chat=models.chat,
            preset=models.preset,
        )
        memory.surface = surface
        return memory

    def episodes(self, place: Place, *, surface: Surface | None = None) -> Memory:
        """Open a handle on what was said in a project."""
        scope = Scope(org=place.org, project=place.project)
        return self.open(scope, surface=surface, chosen=self._chosen(place))

    def features(self, org: str, project: str | None, embedder: str = "") -> Memory:
        """Open a handle on the features of a project's sets, or of its organisation's own.

        Args:
            org, project: Whose they are.
            embedder: The name of the one that the sets use; empty for the service's own.
        """
        return self.open(features_scope(org, project), chosen=self._named(embedder))

    def _named(self, embedder: str) -> ChosenModels:
        return self._choice.chosen(embedder) if self._choice else OWN_MODELS

    def _chosen(self, place: Place) -> ChosenModels:
        return self._choice.of_project(place) if self._choice else OWN_MODELS

    def _keep_open(self, chosen: ChosenModels) -> str | Path:
        """Let the store of these vectors stay open, and return where it is."""
        if not chosen.folder:
            return self._store
        name = quote(chosen.folder, safe="")
        path = f"{str(self._store).rstrip('/')}/{EMBEDDERS_FOLDER}/{name}"
        with self._opening:
            if self._embedders.get(name) is not chosen.embedder:
                # Another one of that name: the service has moved, say, or its key was changed.
                if name in self._keeping_open:
                    self._keeping_open.pop(name).close()
                self._keeping_open[name] = Memory(path, embedder=chosen.embedder)
                self._embedders[name] = chosen.embedder
        return path

    def list_places(self) -> list[Place]:
        """Return the projects whose memories the store holds, by name, without their features."""
        with self.engine() as engine:
            engine.store.version()
            found = engine.store.scan_fields(CURRENT, ("org", "project"))
        owners = set(zip(found["org"].tolist(), found["project"].tolist(), strict=True))
        named = {(org or DEFAULT_NAME, project or DEFAULT_NAME) for org, project in owners}
        return [Place(*names) for names in sorted(named) if not names[1].endswith(FEATURES)]

    def holds(self, place: Place) -> bool:
        """Return whether the store holds a memory of a project."""
        with self.episodes(place) as memory:
            return memory.count() > 0

    def recorded(self, which: RecordedIn) -> RecordedSearches:
        """Return the recorded searches of the store that a project is in."""
        with self.engine(Place(which.org, which.project)) as engine:
            return RecordedSearches(engine.uri)

    def health(self) -> StoreHealth:
        """Measure the whole store, all scopes together."""
        return self._keeping_open[""].health()

    def upkeep_fails(self) -> bool:
        """Whether upkeep has failed and not succeeded since."""
        with self.engine() as engine:
            return engine.writer.upkeep_failure is not None

    @contextmanager
    def engine(self, place: Place | None = None) -> Iterator[Engine]:
        """Join the open store of a project, None for the main one, below its verbs.

        Every read there takes a scope's predicate.
        """
        with self._join(OWN_MODELS if place is None else self._chosen(place)) as joined:
            yield joined

    @contextmanager
    def features_engine(self, embedder: str = "") -> Iterator[Engine]:
        """Join likewise the open store of the features of sets that use an embedder."""
        with self._join(self._named(embedder)) as joined:
            yield joined

    @contextmanager
    def _join(self, chosen: ChosenModels) -> Iterator[Engine]:
        joined = acquire(self._keep_open(chosen), chosen.embedder or self._models.embedder)
        try:
            yield joined
        finally:
            release(joined)

    def close(self) -> None:
        """Let the stores close, once every write has been finished."""
        for each in self._keeping_open.values():
            each.close()
