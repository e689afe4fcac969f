"""`MemoryService`: a store and its catalog behind one object, with one verb per idea."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from ekphory.agent_trace import StageResult
from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import AlreadyThere, Database
from ekphory.catalog.extraction import Consolidations, ExtractionQueue
from ekphory.catalog.projects import EpisodicSwitches, Project, Projects, Traces
from ekphory.errors import InvalidInput
from ekphory.memory import Memory
from ekphory.recorded_searches import RecordedIn
from ekphory.scope import Scope
from ekphory.search import SearchResult
from ekphory.service.configuration import LEARNING_MODEL, SET_EMBEDDER, SUMMARY_MODEL, Configuration
from ekphory.service.episodes import EpisodeQuery, Episodes, FoundEpisodes, Uids
from ekphory.service.extraction import Extraction, Extractor
from ekphory.service.handles import (
    DEFAULT_NAMES,
    OWN_MODELS,
    Handles,
    Place,
    ServiceModels,
    catalog_file,
)
from ekphory.service.inspection import Inspection
from ekphory.service.learning import ExtractionSettings, Learning
from ekphory.service.semantic import Feature, Features
from ekphory.service.sets import Categories, SemanticSets
from ekphory.service.summary import Summaries
from ekphory.types import Trace

# What a search did, in the words of MemMachine's `retrieval_trace`.

_NAMES = frozenset(
    (
        *("trace_id", "agent", "route", "provider", "reason_code", "fallback_trigger_reason"),
        *("selected_route", "selected_agent", "selected_agent_name"),
    )
)
"""Fields that hold names, never what was said."""


def retrieval_trace(
    trace_id: str, episodes: FoundEpisodes | None, features: Sequence[SearchResult]
) -> dict[str, Any]:
    """Describe one search.

    Args:
        trace_id: Its name.
        episodes: What episodic memory gave; None where it was not searched.
        features: What the searches of semantic memory gave.
    """
    result = episodes.result if episodes is not None else None
    searches = [found.trace for found in (result, *features) if found is not None]
    described: dict[str, Any] = {
        "trace_id": trace_id,
        "agent": "MemMachineSearch",
        "selected_agent": "memmachine_search",
        "selected_agent_name": "MemMachineSearch",
        "memory_search_called": len(searches),
        "rerank_applied": any(map(_is_reranked, searches)),
    }
    if result is not None:
        described["abstained"] = result.abstained
        described["order"] = result.order
        if result.retrieval_trace is not None:
            described |= result.retrieval_trace.to_dict()
    described["final_episode_count"] = 0 if episodes is None else len(episodes.long_term)
    described["searches"] = [search.to_dict() for search in searches]
    return described


def _resolved_hops(episodes: FoundEpisodes | None) -> tuple[StageResult, ...]:
    """Return what the agent followed, where it searched."""
    result = None if episodes is None else episodes.result
    traced = None if result is None else result.retrieval_trace
    return () if traced is None else traced.hops


def drop_texts(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace as it is kept: names, counts and times, and nothing of what was said."""
    kept = {
        name: value
        for name, value in trace.items()
        if name in _NAMES or isinstance(value, int | float)
    }
    return kept | {"searches": trace["searches"]}


def _is_reranked(trace: Trace) -> bool:
    return any("rerank" in stage.name and stage.status == "ran" for stage in trace.stages)


# `MemoryService`: a store and its catalog behind one object, with one verb per idea.

Kind = Literal["episodic", "semantic"]
KINDS: tuple[Kind, ...] = ("episodic", "semantic")


@dataclass(frozen=True, slots=True)
class SearchFindings:
    """What a search found; None where a kind of memory was not searched, or is switched off."""

    episodes: FoundEpisodes | None
    features: list[Feature] | None
    trace: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPart:
    """What sets a service apart that answers for a part of a cluster.

    Attributes:
        publish: As `Database` takes it, for what cannot be made again; None where nothing is.
        trace_prefix: What the ids of its traces begin with, so that it is found by them.
        remedies: As `Configuration` takes them, which changes in no part alone.
    """

    publish: Callable[[bytes], None] | None
    trace_prefix: str
    remedies: Mapping[str, str]


class MemoryService:
    """A store and its catalog. Safe to use from several threads, beside other processes.

    Attributes:
        models: What embeds, reranks and answers, where nothing else is configured.
        configuration: What else is.
        handles: Handles on the store.
        projects, keys, traces: Tables of the catalog.
        episodes, features, sets, categories: The verbs of each kind of memory.
        extraction: Features learnt from episodes, in the background.
        inspection: What the inspector looks at.
        uids: Ids of episodes as UUIDs.
    """

    def __init__(
        self,
        store: str | Path,
        *,
        models: ServiceModels,
        catalog: Path | None = None,
        extraction: ExtractionSettings | None = None,
        document: Mapping[str, Any] | None = None,
        part: ClusterPart | None = None,
    ) -> None:
        """Open the store and the catalog, and make them where there are none.

        Args:
            store: A directory, or any Lance URI.
            models: What the service holds.
            catalog: The catalog's file; None for one in the store's directory.
            extraction: How features are learnt where there is a language model.
            document: The sections of a configuration file, as `read_configuration` returns them.
            part: What of a cluster it answers for; None for a store of its own.

        Raises:
            InvalidInput: The store cannot be used, or lies where no catalog can be beside it.
            StoreError: The store or the catalog cannot be opened.
        """
        path = catalog_file(store, catalog)
        self.models = models
        self._database = Database(path, publish=part.publish if part else None)
        remedies = part.remedies if part else None
        self.configuration = Configuration(self._database, models, document, remedies=remedies)
        self._trace_prefix = part.trace_prefix if part else ""
        self.handles = Handles(store, models, self.configuration)
        # What can be made again need not outlive a power loss, and so is written in microseconds.
        self._lasting_less = Database(path, durability="crash")
        self.traces = Traces(self._lasting_less)
        self.uids = Uids(self._lasting_less)
        self.projects = Projects(self._database)
        # Asked for every request: never to wait behind a write of this process.
        self._key_database = Database(path)
        self.keys = AccessKeys(self._key_database)
        self._summaries = Summaries(partial(self.configuration.chat, *SUMMARY_MODEL))
        self.episodes = Episodes(self.handles, self.uids, self._summaries, self.configuration)
        self.inspection = Inspection(self.handles, self.uids, self.configuration)
        new_embedder = partial(self.configuration.new_embedder, *SET_EMBEDDER)
        self.sets = SemanticSets(self._database, new_embedder)
        self.categories = Categories(self._database, self.sets)
        self.features = Features(self.handles, self.sets, path.parent)
        self.extraction = self._extraction(path.parent, extraction or ExtractionSettings())

    def memory(self, place: Place) -> Memory:
        """Open a handle on a project, with all the verbs of `Memory`; to be closed after use."""
        return self.handles.episodes(place)

    def open(self, scope: Scope) -> Memory:
        """Open a handle on any scope, likewise; that of one project has the models of the project.

        Raises:
            EkphoryError: One of these is not there any more, or cannot be loaded.
        """
        chosen = OWN_MODELS
        if scope.org is not None and scope.project is not None:
            chosen = self.configuration.of_project(Place(scope.org, scope.project))
        return self.handles.open(scope, surface="server", chosen=chosen)

    def ranking_models(self) -> ServiceModels:
        """Return what the service holds, with the reranker that is configured now.

        Raises:
            EkphoryError: It is not there any more, or cannot be loaded.
        """
        chosen = self.configuration.chosen("").reranker
        return replace(self.models, reranker=chosen or self.models.reranker)

    def count(self, org: str) -> int:
        """Return how many memories an organisation holds, those of other embedders as well.

        Raises:
            EkphoryError: An embedder of a project is not there any more, or cannot be loaded.
        """
        own = (each.config for each in self.projects.all() if each.org == org)
        named = {"", *(str(config.get("embedder") or "") for config in own)}
        stores = {each.folder: each for each in map(self.configuration.chosen, named)}
        found = 0
        for chosen in stores.values():
            with self.handles.open(Scope(org=org), surface="server", chosen=chosen) as memory:
                found += memory.count()
        return found

    def search(
        self,
        place: Place,
        query: EpisodeQuery,
        *,
        kinds: Collection[Kind] = KINDS,
        set_metadata: Mapping[str, object] | None = None,
    ) -> SearchFindings:
        """Find what answers a question, in episodic and semantic memory.

        Args:
            place: The project.
            query: The question, with what is wanted of episodic memory.
            kinds: Which kinds of memory are searched.
            set_metadata: What the semantic sets are about; None for all.

        Raises:
            InvalidInput: The question cannot be used.
        """
        episodes: FoundEpisodes | None = None
        features: list[Feature] | None = None
        results: list[SearchResult] = []
        project = self.projects.find(*place.owner)
        switches = self.configuration.episodic(
            EpisodicSwitches() if project is None else project.switches
        )
        if "episodic" in kinds and switches.enabled:
            episodes = self.episodes.search(place, query, switches)
        if "semantic" in kinds and self.configuration.has_semantic():
            features, results = self.features.search(
                place,
                query.text,
                limit=query.limit,
                condition=query.filter,
                set_metadata=set_metadata,
                hops=_resolved_hops(episodes),
            )
        trace_id = self._trace_prefix + secrets.token_hex(16)[len(self._trace_prefix) :]
        trace = retrieval_trace(trace_id, episodes, results)
        self.traces.keep(trace["trace_id"], *place.owner, drop_texts(trace))
        return SearchFindings(episodes, features, trace)

    def list_projects(self) -> list[Project]:
        """Return the projects of the catalog and those that the store alone knows, by name."""
        known = {(each.org, each.project): each for each in self.projects.all()}
        held = {place.owner: Project(*place.owner) for place in self.handles.list_places()}
        return [each for _, each in sorted((held | known).items())]

    def get_project(self, place: Place) -> Project:
        """Return a project of the catalog or, without settings, of the store.

        Raises:
            NotThere: There is none of that name.
        """
        known = self.projects.find(*place.owner)
        if known is None and self.handles.holds(place):
            return Project(*place.owner)
        return known or self.projects.get(*place.owner)

    def switch_parts(self, place: Place, changes: Mapping[str, bool | None]) -> None:
        """Switch parts of episodic memory on or off; None leaves one as it is.

        Raises:
            NotThere: There is no such project.
        """
        self.get_project(place)
        self.ensure_project(place)
        self.projects.switch(*place.owner, changes)

    def create_project(self, project: Project) -> Project:
        """Add a project; return it as it is kept.

        Raises:
            AlreadyThere: There is one of that name that was made otherwise.
            InvalidInput: It asks for models that are not there.
        """
        config = dict(project.config)
        named = {"embedder": config.get("embedder") or "", "reranker": config.get("reranker") or ""}
        self.configuration.check_name("embedders", named["embedder"])
        self.configuration.check_name("rerankers", named["reranker"])
        # What is the server's own is not kept: it may be another one at its next start.
        config = {name: value for name, value in config.items() if value not in DEFAULT_NAMES}
        embedder = config.pop("embedder", "") or self.configuration.new_embedder()
        # Loaded before there is a project that could not use them.
        chosen = self.configuration.chosen(embedder, config.get("reranker", ""))
        if chosen.folder:
            config["embedder"] = chosen.folder
            if self.handles.holds(Place(project.org, project.project)):
                problem = "must be the server's own: the project holds memories already"
                raise InvalidInput("embedder", chosen.folder, problem, "Leave it empty")
        made = replace(project, config=config)
        try:
            self.projects.create(made)
        except AlreadyThere:
            # The same request again: its first answer may have been lost.
            found = self.projects.get(made.org, made.project)
            if (found.description, found.config) != (made.description, made.config):
                raise
        return made

    def ensure_project(self, place: Place) -> None:
        """Add a project, unless there is one of that name."""
        if self.projects.find(*place.owner) is None:
            # What others have written there was embedded by our own model.
            bound = "" if self.handles.holds(place) else self.configuration.new_embedder()
            self.projects.ensure(*place.owner, {"embedder": bound} if bound else {})

    def configure_set(
        self, place: Place, set_id: str, *, embedder: str | None, llm: str | None
    ) -> None:
        """Say which models a set is to use; None leaves one as it is.

        Another embedder reads the set's features anew.

        Raises:
            NotThere: There is no such set.
            InvalidInput: There is no such model.
        """
        self.configuration.check_name("embedders", embedder or "")
        self.configuration.check_name("language_models", llm or "")
        with self.features.alone():
            before = self.sets.for_writing(place, self.sets.get(place, set_id).id)
            if embedder is not None and embedder != before.embedder:
                self.features.move(before, embedder)
            self.sets.configure(before, embedder=embedder, llm=llm)
            if embedder is not None and embedder != before.embedder:
                self.features.forget_moved(before)

    def delete_project(self, place: Place) -> None:
        """Forget all memories and features of a project, and then the project.

        Raises:
            NotThere: There is no such project.
        """
        self.get_project(place)
        self.extraction.drop(place)
        self.episodes.delete_all(place)
        which = RecordedIn(org=place.org, project=place.project)
        self.handles.recorded(which).clear(which)
        with self.features.alone():
            self.features.delete_all(place)
            self.projects.delete(*place.owner)

    def close(self) -> None:
        """Finish every write, and close the store and the catalog."""
        self.extraction.close()
        self._summaries.close()
        self.handles.close()
        for database in (self._lasting_less, self._key_database, self._database):
            database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _extraction(self, folder: Path, settings: ExtractionSettings) -> Extraction:
        queue = ExtractionQueue(self._lasting_less)
        extractor = Extractor(
            lambda owner: self.configuration.chat(*LEARNING_MODEL, named=owner.llm),
            queue,
            handles=self.handles,
            learning=Learning(self.features, self.sets, self.categories, settings.learnt),
            consolidations=Consolidations(self._lasting_less),
        )
        return Extraction(queue, extractor, self.configuration, folder=folder, settings=settings)
