"""`MemoryService`: a store and its catalog behind one object, with one verb per idea."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.categories import Categories
from ekphory.catalog.consolidations import Consolidations
from ekphory.catalog.database import Database
from ekphory.catalog.extraction_queue import ExtractionQueue
from ekphory.catalog.projects import EpisodicSwitches, Project, Projects
from ekphory.catalog.semantic_sets import SemanticSets
from ekphory.catalog.shown_ids import ShownIds
from ekphory.catalog.traces import StoredTrace, Traces, new_trace_id
from ekphory.memory import Memory
from ekphory.results import SearchResult
from ekphory.service.browsing import Browsing
from ekphory.service.catalog_file import catalog_file
from ekphory.service.category_verbs import CategoryVerbs
from ekphory.service.episode import EpisodeQuery, FoundEpisodes
from ekphory.service.episodes import Episodes
from ekphory.service.examination import Examination
from ekphory.service.extraction.extractor import Extractor
from ekphory.service.extraction.learning import Learning
from ekphory.service.extraction.settings import ExtractionSettings
from ekphory.service.extraction.targets import Targets
from ekphory.service.extraction.verbs import Extraction, RunningExtraction
from ekphory.service.extraction.worker import ExtractionWorker
from ekphory.service.feature import Feature
from ekphory.service.features import FeatureQuery, Features
from ekphory.service.handles import Handles
from ekphory.service.model_verbs import ModelVerbs
from ekphory.service.models import ServiceModels
from ekphory.service.place import Place
from ekphory.service.retrieval_trace import retrieval_trace, without_texts
from ekphory.service.set_verbs import SetVerbs
from ekphory.service.uids import Uids
from ekphory.store.store import StoreHealth

Kind = Literal["episodic", "semantic"]
KINDS: tuple[Kind, ...] = ("episodic", "semantic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is looked for in a project.

    Attributes:
        episodes: The question, with what is wanted of episodic memory.
        kinds: Which kinds of memory are searched.
        set_metadata: What the semantic sets are about; None for all.
    """

    episodes: EpisodeQuery
    kinds: tuple[Kind, ...] = KINDS
    set_metadata: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found; None where a kind of memory was not searched, or is switched off."""

    episodes: FoundEpisodes | None
    features: list[Feature] | None
    trace: Mapping[str, Any]


class MemoryService:
    """A store and its catalog. Safe to use from several threads, beside other processes.

    Attributes:
        models: What embeds, reranks and answers.
        models_alone: What they do on request, without memories.
        projects, keys: Tables of the catalog.
        episodes, features, sets, categories: The verbs of each kind of memory.
        extraction: Features learnt from episodes, in the background.
        browsing, examination: What the inspector looks at.
        uids: Ids of episodes as UUIDs.
    """

    def __init__(
        self,
        store: str | Path,
        *,
        models: ServiceModels,
        catalog: Path | None = None,
        extraction: ExtractionSettings | None = None,
    ) -> None:
        """Open the store and the catalog, and make them where there are none.

        Args:
            store: A directory, or any Lance URI.
            models: What the service holds.
            catalog: The catalog's file; None for one in the store's directory.
            extraction: How features are learnt where the models include a language model.

        Raises:
            InvalidInput: The store cannot be used, or lies where no catalog can be beside it.
            StoreError: The store or the catalog cannot be opened.
        """
        path = catalog_file(store, catalog)
        self.models = models
        self._handles = Handles(store, models)
        self._database = Database(path)
        # What can be made again need not outlive a power loss, and so is written in microseconds.
        self._lasting_less = Database(path, durability="crash")
        self._traces = Traces(self._lasting_less)
        self.models_alone = ModelVerbs(models)
        self.uids = Uids(ShownIds(self._lasting_less))
        self.projects = Projects(self._database)
        # Asked for every request: never to wait behind a write of this process.
        self._key_database = Database(path)
        self.keys = AccessKeys(self._key_database)
        self.episodes = Episodes(self._handles, self.uids)
        self.browsing = Browsing(self._handles)
        self.examination = Examination(self._handles, self.uids)
        self.sets = SetVerbs(SemanticSets(self._database), models)
        self.categories = CategoryVerbs(Categories(self._database), self.sets)
        self.features = Features(self._handles, self.sets)
        self.extraction = self._extraction(path.parent, extraction or ExtractionSettings())

    def memory(self, place: Place) -> Memory:
        """Open a handle on a project, with all the verbs of `Memory`; to be closed after use."""
        return self._handles.episodes(place)

    def health(self) -> StoreHealth:
        """Measure the whole store, all projects together."""
        return self._handles.health()

    def upkeep_fails(self) -> bool:
        """Whether the store's upkeep has failed and not succeeded since."""
        return self._handles.upkeep_fails()

    def search(self, place: Place, question: Question) -> Found:
        """Find what answers a question, in episodic and semantic memory.

        Raises:
            InvalidInput: The question cannot be used.
        """
        episodes = self._found_episodes(place, question) if "episodic" in question.kinds else None
        features: list[Feature] | None = None
        results: list[SearchResult] = []
        if "semantic" in question.kinds:
            query = FeatureQuery(
                filter=question.episodes.filter, set_metadata=question.set_metadata
            )
            features, results = self.features.search(
                place, question.episodes.text, query, limit=question.episodes.limit
            )
        trace = retrieval_trace(new_trace_id(), episodes, results)
        self._traces.keep(trace["trace_id"], *place.owner, without_texts(trace))
        return Found(episodes, features, trace)

    def trace(self, trace_id: str) -> StoredTrace:
        """Give what an earlier search did.

        Raises:
            NotThere: It is not known, or not any more.
        """
        return self._traces.get(trace_id)

    def create_project(self, project: Project) -> Project:
        """Add a project; gives it with the names of the models that it uses.

        Raises:
            AlreadyThere: There is one of that name.
            InvalidInput: It asks for models that are not there.
        """
        config = dict(project.config)
        self.models.check_names(
            embedder=config.get("embedder", ""), reranker=config.get("reranker", "")
        )
        config["embedder"] = self.models.embedder_name
        config["reranker"] = self.models.reranker_name
        made = Project(
            org=project.org,
            project=project.project,
            description=project.description,
            config=config,
        )
        self.projects.create(made)
        return made

    def delete_project(self, place: Place) -> None:
        """Forget all memories and features of a project, and then the project.

        Raises:
            NotThere: There is no such project.
        """
        self.projects.get(*place.owner)
        self.extraction.drop(place)
        self.episodes.delete_all(place)
        self.features.delete_all(place)
        self.projects.delete(*place.owner)

    def switches(self, place: Place) -> EpisodicSwitches:
        """Give which parts of episodic memory a project uses; all, where there is no project."""
        project = self.projects.find(*place.owner)
        return EpisodicSwitches() if project is None else project.switches

    def close(self) -> None:
        """Finish every write, and close the store and the catalog."""
        self.extraction.close()
        self._handles.close()
        for database in (self._lasting_less, self._key_database, self._database):
            database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _extraction(self, folder: Path, settings: ExtractionSettings) -> Extraction:
        queue = ExtractionQueue(self._lasting_less)
        if self.models.chat is None or settings.learnt == "off":
            return Extraction(queue, None)
        extractor = Extractor(
            self.models.chat,
            queue,
            handles=self._handles,
            targets=Targets(self.sets, self.categories, settings.learnt),
            learning=Learning(self.features, self.sets),
            consolidations=Consolidations(self._lasting_less),
        )
        worker = ExtractionWorker(queue, extractor, folder=folder, settings=settings)
        return Extraction(queue, RunningExtraction(extractor, worker))

    def _found_episodes(self, place: Place, question: Question) -> FoundEpisodes | None:
        switches = self.switches(place)
        if not switches.enabled:
            return None
        return self.episodes.search(
            place,
            question.episodes,
            long_term=switches.long_term,
            short_term=switches.short_term,
        )
