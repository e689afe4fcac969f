"""What a service uses: MemMachine's configuration file, under what was set over HTTP."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ekphory import memmachine_config
from ekphory.agent.configuration import check_agent_section, make_agent_settings
from ekphory.agent.llm_session import ModelProvider
from ekphory.agent.provider import AgentSettings
from ekphory.catalog.database import Database, NotThere
from ekphory.catalog.projects import EpisodicSwitches, Projects
from ekphory.config import Settings
from ekphory.errors import EkphoryError, InvalidInput, ServiceError
from ekphory.memmachine_config import find_value
from ekphory.models.chat import Chat, OpenAIChat
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.reranker import RerankingModel
from ekphory.service.handles import (
    DEFAULT_NAMES,
    ChosenModels,
    NotConfigured,
    Place,
    ServiceModels,
    load_models,
)

ResourceKind = Literal["embedders", "language_models", "rerankers"]
ResourceStatus = Literal["ready", "failed", "pending"]
"""Whether a model works in this process, cannot be used, or was not asked for yet."""
SHORT_TERM_EPISODES = 20
"""Most of the newest episodes that come with every search, where nothing else is said."""
SUMMARY_MODEL = ("episodic_memory", "short_term_memory", "llm_model")
LEARNING_MODEL = ("semantic_memory", "llm_model")
SET_EMBEDDER = ("semantic_memory", "embedding_model")
"""Where it is said which language model sums up, which one learns, and what new sets use."""
_CAPACITY = ("episodic_memory", "short_term_memory", "message_capacity")
_GATHERED = ("semantic_memory", "ingestion_trigger_messages")
_AGE = ("semantic_memory", "ingestion_trigger_age")
_DURATION = re.compile(r"(\d+:){0,2}\d+(\.\d+)?")
_LEVELS = 3
"""So deep a change is merged: a section, its part, its key. A resource is replaced as a whole."""
_NAME = re.compile(r"\w[\w .:@/-]{0,99}")
_RETRY_SECONDS = 30.0
"""What could not be loaded is tried again after so long."""


# What the file says, beside the environment.

_OVERRIDDEN = {
    "embedder": (("episodic_memory", "long_term_memory", "embedder"),),
    "reranker": (("episodic_memory", "long_term_memory", "reranker"),),
    "chat_url": (SUMMARY_MODEL, LEARNING_MODEL),
}
"""Settings, and the keys of the file that they go before."""
_SETTINGS = {"embedders": "embedder", "language_models": "chat_url", "rerankers": "reranker"}
"""The setting of each kind of model."""


def read_configuration(settings: Settings) -> tuple[ServiceModels, dict[str, Any], str | None]:
    """Load the models of a service, from the environment before the file that it names.

    Returns:
        The models; the file's sections, without what the environment overrides; and what is to be
        learnt, None where nobody says.

    Raises:
        InvalidInput: A setting or a key cannot be used.
        MissingExtra: The file needs the `[agent]` extra.
        ModelError, ServiceError: A model cannot be loaded.
    """
    document = _read_document(settings)
    for name, paths in _OVERRIDDEN.items():
        for path in paths if getattr(settings, name) is not None else ():
            nested: Any = None
            for key in reversed(path):
                nested = {key: nested}
            document = _merge(document, nested)
    models = load_models(settings)
    declared = memmachine_config.mapping(document.get("resources"), place="resources")
    loaded: dict[str, Any] = {}
    for kind, load in _LOADERS.items():
        setting = _SETTINGS[kind]
        for path in _OVERRIDDEN[setting]:
            if (named := find_value(document, *path)) is not None:
                loaded[setting.removesuffix("_url")] = load(declared, named)
    agent = make_agent_settings(document)
    if agent.provider != "local":
        ModelProvider(agent)  # refuses what no session can be held with
    return replace(models, **loaded), document, settings.extraction or _read_prompts(document)


@dataclass(frozen=True, slots=True)
class ConfiguredPlaces:
    """Where the file says that a server listens, and keeps its projects.

    Attributes:
        host, port: What it listens on.
        sessions: The catalog's file; None for one in the store's directory.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    sessions: Path | None = None


def read_places(settings: Settings) -> ConfiguredPlaces:
    """Read the sections `server` and `session_manager`.

    Raises:
        InvalidInput: A key cannot be used, or the sessions' database is not SQLite.
        MissingExtra: The file needs the `[agent]` extra.
    """
    document = _read_document(settings)
    server: dict[str, Any] = {
        name: read(found)
        for name, read in (("host", str), ("port", int))
        if (found := find_value(document, "server", name)) is not None
    }
    database, path = find_value(document, "session_manager", "database"), None
    if database is not None:
        place = f"resources.databases.{database}"
        path = find_value(document, "resources", "databases", database, "config", "path")
        if find_value(document, "resources", "databases", database, "provider") != "sqlite":
            problem = "projects and keys are kept in SQLite"
            raise InvalidInput(f"{place}.provider", database, problem, "Name such a database")
        path = Path(memmachine_config.text(path, place=f"{place}.config.path")).expanduser()
    return ConfiguredPlaces(**server, sessions=path)


def _read_document(settings: Settings) -> dict[str, Any]:
    """Return the sections of the file; empty without one.

    Raises:
        InvalidInput: It says what no request could use.
        MissingExtra: It needs the `[agent]` extra.
    """
    if settings.config is None:
        return {}
    return memmachine_config.read_document(settings.config, check=_check_document)


def _check_document(document: Mapping[str, Any]) -> None:
    """Refuse what would be found out at a request, when a write may be done already."""
    resources = memmachine_config.mapping(document.get("resources"), place="resources")
    for kind in RESOURCE_KINDS:
        declared = memmachine_config.mapping(resources.get(kind), place=f"resources.{kind}")
        named = {path: find_value(document, *path) for of, path in _NAMED if of == kind}
        for name in declared:
            memmachine_config.check_resource(resources, kind, name)
        for path, name in named.items():
            # Those of the agent may be variables, which it reads itself.
            if name is not None and path[0] != "retrieval_agent":
                known = (*declared, *DEFAULT_NAMES)
                memmachine_config.refuse_unknown([name], known, place=".".join(path))
    for path, read in _READERS.items():
        if (value := find_value(document, *path)) is not None:
            read(value, place=".".join(path))
    check_agent_section(document)


def _read_prompts(document: Mapping[str, Any]) -> str | None:
    """Return what the section `prompt` lets be learnt; None where it says nothing of it."""
    section = memmachine_config.mapping(document.get("prompt"), place="prompt")
    listed = [each for name, each in section.items() if name.endswith("_categories")]
    if not listed:
        return None
    named = {str(name) for names in listed for name in names or ()}
    memmachine_config.refuse_unknown(named, ("profile_prompt",), place="prompt")
    return "profile" if named else "categories"


_LOADERS: dict[ResourceKind, Callable[[Mapping[str, Any], str], Any]] = {
    "embedders": memmachine_config.embedder,
    "rerankers": memmachine_config.reranker,
    "language_models": memmachine_config.load_language_model,
}


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A model that is configured.

    Attributes:
        name, provider: As the configuration has them; the service's own models come from `ekphory`.
        status: Of this process.
        error: Why it cannot be used.
    """

    name: str
    provider: str
    status: ResourceStatus = "ready"
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What became of a model, and of which configuration.

    Attributes:
        entry: The configuration.
        found: The model, or why it could not be loaded.
        at: When that was.
        status: What is known of it.
        problem: Why it does not work; it may be loaded all the same.
    """

    entry: Mapping[str, Any]
    found: Any
    at: float
    status: ResourceStatus
    problem: EkphoryError | None

    @property
    def is_to_be_retried(self) -> bool:
        """Whether it failed, and that was a while ago."""
        is_old = self.at + _RETRY_SECONDS < time.monotonic()
        return is_old and isinstance(self.found, EkphoryError)

    def tried(self) -> _Loaded:
        """Ask a language model for what costs nothing, and return what that tells."""
        if not isinstance(self.found, OpenAIChat):
            return self
        try:
            self.found.check()
        except ServiceError as error:
            return replace(self, status="failed", problem=error)
        return replace(self, status="ready", problem=None)


class Configuration:
    """The configuration of one service. Safe to use from several threads, beside other processes.

    What is set over HTTP lies in the catalog, so every process sees it at its next request, and it
    goes before the file.
    """

    def __init__(
        self,
        database: Database,
        models: ServiceModels,
        document: Mapping[str, Any] | None = None,
        *,
        remedies: Mapping[str, str] | None = None,
    ) -> None:
        """Take what the service was started with.

        Args:
            database: The catalog.
            models: The models.
            document: The file's sections.
            remedies: Where nothing can be changed over HTTP: what to do instead, by the last name
                of a key, and for all others under an empty one; None where it can.
        """
        self._database = database
        self._remedies = remedies
        self._models = models
        self._projects = Projects(database)
        self._document = dict(document or {})
        self._read: tuple[str, dict[str, Any]] = ("{}", self._document)
        self._loaded: dict[tuple[ResourceKind, str], _Loaded] = {}
        self._loading = threading.Lock()
        self._agent: tuple[Mapping[str, Any], AgentSettings] | None = None
        own = find_value(self._document, "episodic_memory", "long_term_memory", "embedder")
        self._embedder_name = str(own or models.embedder_name)
        self._own_embedder = {*DEFAULT_NAMES, models.embedder_name, self._embedder_name}

    # What is said where.

    def document(self) -> dict[str, Any]:
        """Return all sections, as they are now."""
        rows = self._database.read("SELECT content FROM configuration")
        text = rows[0]["content"] if rows else "{}"
        if self._read[0] != text:
            self._read = (text, _merge(self._document, json.loads(text)))
        return self._read[1]

    def value(self, *path: str) -> Any:  # noqa: ANN401  any key
        """Return what a key of a section says now, as `find_value`."""
        return find_value(self.document(), *path)

    def change(self, patch: Mapping[str, Any]) -> None:
        """Set keys of sections, durably; an empty text lets the service choose again.

        Raises:
            InvalidInput: A model is named that is not there, or nothing can be changed here.
        """
        for path, value in _find_leaves(patch):
            self._check_can_change(path, value)
        for kind, path in _NAMED:
            self.check_name(kind, find_value(patch, *path) or "")
        self._write(patch)

    def episodic(self, switches: EpisodicSwitches) -> EpisodicSwitches:
        """Return a project's switches, without what is switched off for all."""
        keys = ("enabled", "long_term_memory_enabled", "short_term_memory_enabled")
        on = [self.value("episodic_memory", key) is not False for key in keys]
        return EpisodicSwitches(
            switches.enabled and on[0], switches.long_term and on[1], switches.short_term and on[2]
        )

    def has_semantic(self) -> bool:
        """Return whether semantic memory is in use."""
        return self.value("semantic_memory", "enabled") is not False

    def short_term_episodes(self) -> int:
        """Return how many of the newest episodes come with every search, at most."""
        said = self.value(*_CAPACITY)
        return SHORT_TERM_EPISODES if said is None else int(said)

    def agent(self) -> AgentSettings:
        """Return how the retrieval agent works, with the models that are configured now."""
        document = self.document()
        if self._agent is None or self._agent[0] is not document:
            # Loaded once: it may hold a model.
            self._agent = (document, make_agent_settings(document))
        return self._agent[1]

    # The models.

    def check_name(self, kind: ResourceKind, name: str) -> None:
        """Check that a model can be named.

        Raises:
            InvalidInput: There is none of that name.
        """
        own = self._own_embedder if kind == "embedders" else {*DEFAULT_NAMES, self._own(kind)}
        if name not in own and name not in self._entries(kind):
            known = ", ".join(repr(each.name) for each in self.states(kind)) or "none"
            remedy = f"Leave it empty, or declare it in `resources`; there are: {known}"
            raise InvalidInput(kind[:-1], name, "must be a model that is here", remedy)

    def of_project(self, place: Place) -> ChosenModels:
        """Return the models of a project.

        Raises:
            EkphoryError: One of them is not there any more, or cannot be loaded.
        """
        project = self._projects.find(*place.owner)
        config = {} if project is None else project.config
        return self.chosen(str(config.get("embedder") or ""), str(config.get("reranker") or ""))

    def chosen(self, embedder: str, reranker: str = "") -> ChosenModels:
        """Return models by their names.

        Raises:
            EkphoryError: One of them is not there any more, or cannot be loaded.
        """
        own = embedder in self._own_embedder
        embeds = None if own else self._load("embedders", embedder)
        named = self.reranker_name() if reranker in DEFAULT_NAMES else reranker
        is_ours = named == self._own("rerankers") and named not in self._entries("rerankers")
        reranks = None if is_ours else self._load("rerankers", named)
        return ChosenModels(
            embedder=cast("EmbeddingModel | None", embeds),
            folder="" if own else embedder,
            reranker=cast("RerankingModel | None", reranks),
        )

    def reranker_name(self) -> str:
        """Return the reranker of projects that name none; empty where there is none."""
        said = self.value("episodic_memory", "long_term_memory", "reranker")
        return str(said or self._models.reranker_name)

    def named(self, project: Mapping[str, Any]) -> dict[str, Any]:
        """Return a project's configuration with the names of the models that it leaves open."""
        used = {"embedder": self._embedder_name, "reranker": self.reranker_name()}
        return {**used, **{name: value for name, value in project.items() if value}}

    def new_embedder(self, *path: str) -> str:
        """Return which embedder is bound to a project or set that is made now; empty for our own.

        Args:
            path: The key that names it: by default, that of long-term memory.
        """
        named = self.value(*(path or ("episodic_memory", "long_term_memory", "embedder")))
        return "" if named is None or named in self._own_embedder else str(named)

    def chat(self, *path: str, named: str | None = None) -> Chat | None:
        """Return the language model of a set, of a section, or of the service; None without one.

        Raises:
            EkphoryError: It is not there any more.
        """
        name = named if named not in (*DEFAULT_NAMES, None) else self.value(*path)
        if name is None or (self._models.chat is not None and name == self._models.chat.name):
            return self._models.chat
        return cast("Chat", self._load("language_models", name))

    def trigger(self) -> tuple[int, float]:
        """Return how many messages are gathered before they are read, and how long at most."""
        age = self.value(*_AGE) or 300
        return int(self.value(*_GATHERED) or 1), _seconds(age, place=".".join(_AGE))

    def may_learn(self) -> bool:
        """Whether there is any language model, and semantic memory is not switched off."""
        there = self._models.chat is not None or bool(self._entries("language_models"))
        return there and self.has_semantic()

    # Resources.

    def states(self, kind: ResourceKind) -> list[ResourceState]:
        """Return the models of a kind: those that are declared, and the service's own."""
        own, entries = self._own(kind), self._entries(kind)
        of_file = any(find_value(self._document, *path) for path in _OVERRIDDEN[_SETTINGS[kind]])
        is_declared = of_file or own in entries
        ours = [] if not own or is_declared else [ResourceState(own, "ekphory")]
        return ours + [self._state(kind, name, entry) for name, entry in entries.items()]

    def put_resource(
        self, kind: ResourceKind, name: str, provider: str, config: Mapping[str, Any]
    ) -> ResourceState:
        """Declare a model, in place of one of its name, and try it.

        Raises:
            InvalidInput: The name or the configuration cannot be used, or nothing can be changed
                here; nothing was changed.
        """
        self._check_can_change((kind, "name"), name)
        if not _NAME.fullmatch(name):
            raise InvalidInput("name", name, "must be letters, digits and ' .:@/-'", "Shorten it")
        if memmachine_config.names_variable(config):
            # Whoever may set this must not read the server's environment by it.
            problem = "must not name variables: they are read from the file alone"
            raise InvalidInput("config", name, problem, "Send the value itself")
        memmachine_config.check_owns_credentials(provider, config)
        entry = {"provider": provider, "config": dict(config)}
        declared = {**self._section(), kind: {**self._entries(kind), name: entry}}
        loaded = self._attempt(kind, name, entry, declared)
        if isinstance(loaded.found, InvalidInput):
            raise loaded.found
        self._write({"resources": {kind: {name: entry}}})
        return self._keep(kind, name, loaded.tried())

    def try_resource(self, kind: ResourceKind, name: str) -> ResourceState:
        """Load a model anew.

        Raises:
            NotThere: None of that name is declared.
        """
        loaded = self._attempt(kind, name, self._entry(kind, name), self._section())
        return self._keep(kind, name, loaded.tried())

    def delete_resource(self, kind: ResourceKind, name: str) -> None:
        """Take a model out.

        Raises:
            NotThere: None of that name is declared.
            InvalidInput: It is in use.
        """
        self._entry(kind, name)
        users = [".".join(path) for of, path in _NAMED if of == kind and self.value(*path) == name]
        users += self._users(kind, name)
        if users:
            raise InvalidInput("name", name, f"is in use by {users[0]}", "Let it use another first")
        self._write({"resources": {kind: {name: None}}})

    def _check_can_change(self, path: tuple[str, ...], value: object) -> None:
        if self._remedies is not None:
            remedy = self._remedies.get(path[-1], self._remedies[""])
            raise InvalidInput(".".join(path), value, "cannot be changed in a cluster", remedy)

    def _users(self, kind: ResourceKind, name: str) -> Iterable[str]:
        for user, entry in self._entries("rerankers").items():
            config = entry.get("config") or {}
            parts = {
                "rerankers": config.get("reranker_ids"),
                "embedders": [config.get("embedder_id")],
            }
            if name in (parts.get(kind) or ()):
                yield f"the reranker {user}"
        for project in self._projects.all():
            if project.config.get(kind.removesuffix("s")) == name:
                yield f"the project {project.org}/{project.project}"
        for row in self._database.read(
            "SELECT id FROM semantic_sets WHERE embedder = ?1 OR llm = ?1", (name,)
        ):
            yield f"the set {row['id']}"

    def _own(self, kind: ResourceKind) -> str:
        """Return what the service's own model of a kind is called; empty where there is none."""
        chat = self._models.chat.name if self._models.chat else ""
        names = (self._models.embedder_name, chat, self._models.reranker_name)
        return dict(zip(RESOURCE_KINDS, names, strict=True))[kind]

    def _section(self) -> dict[str, Any]:
        return memmachine_config.mapping(self.document().get("resources"), place="resources")

    def _entries(self, kind: ResourceKind) -> dict[str, Any]:
        found = memmachine_config.mapping(self._section().get(kind), place=f"resources.{kind}")
        return {name: entry for name, entry in found.items() if entry is not None}

    def _entry(self, kind: ResourceKind, name: str) -> Mapping[str, Any]:
        found = self._entries(kind).get(name)
        if found is None:
            raise NotThere(f"There is no {name!r} in resources.{kind}")
        return cast("Mapping[str, Any]", found)

    def _state(self, kind: ResourceKind, name: str, entry: Mapping[str, Any]) -> ResourceState:
        provider = str(entry.get("provider"))
        loaded = self._loaded.get((kind, name))
        if loaded is None or loaded.entry != entry:
            is_own = kind == "embedders" and name in self._own_embedder
            return ResourceState(name, provider, "ready" if is_own else "pending")
        if isinstance(loaded.found, OpenAIChat) and loaded.found.usage.answers:
            return ResourceState(name, provider)
        problem = None if loaded.problem is None else str(loaded.problem)
        return ResourceState(name, provider, loaded.status, problem)

    def _load(self, kind: ResourceKind, name: str) -> object:
        """Return a model, loaded once; one that failed is tried again after a while."""
        entry = self._entries(kind).get(name)
        if entry is None:
            raise NotConfigured(
                f"{name!r} is needed here and is not in resources.{kind}. Declare it again."
            )
        with self._loading:
            loaded = self._loaded.get((kind, name))
            if loaded is None or loaded.entry != entry or loaded.is_to_be_retried:
                loaded = self._attempt(kind, name, entry, self._section())
                self._keep(kind, name, loaded)
        if isinstance(loaded.found, EkphoryError):
            raise loaded.found
        return loaded.found

    def _attempt(
        self, kind: ResourceKind, name: str, entry: Mapping[str, Any], section: Mapping[str, Any]
    ) -> _Loaded:
        """Return what loading a model of this entry tells; a language model is not asked by it."""
        try:
            found = _LOADERS[kind](section, name)
        except EkphoryError as error:
            return _Loaded(entry, error, time.monotonic(), "failed", error)
        works: ResourceStatus = "pending" if isinstance(found, OpenAIChat) else "ready"
        return _Loaded(entry, found, time.monotonic(), works, None)

    def _keep(self, kind: ResourceKind, name: str, loaded: _Loaded) -> ResourceState:
        self._loaded[kind, name] = loaded
        return self._state(kind, name, loaded.entry)

    def _write(self, patch: Mapping[str, Any]) -> None:
        with self._database.transaction() as connection:
            row = connection.execute("SELECT content FROM configuration").fetchone()
            merged = _merge(json.loads(row["content"]) if row else {}, patch)
            connection.execute(
                "INSERT INTO configuration (id, content) VALUES (1, ?1) "
                "ON CONFLICT (id) DO UPDATE SET content = ?1",
                (json.dumps(merged),),
            )


def _find_leaves(
    patch: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the keys that a change sets, with their values."""
    for name, value in patch.items():
        if isinstance(value, Mapping):
            yield from _find_leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _seconds(value: object, *, place: str) -> float:
    """Read seconds, or `HH:MM:SS`."""
    if _DURATION.fullmatch(str(value)) is None:
        raise InvalidInput(place, value, "must be seconds or HH:MM:SS", "Write 300")
    parts = str(value).split(":")
    return sum(float(part) * 60.0**power for power, part in enumerate(reversed(parts)))


def _whole(value: object, *, place: str) -> int:
    if not str(value).isdecimal():
        raise InvalidInput(place, value, "must be a whole number", "Give one")
    return int(str(value))


def _check_switch(value: object, *, place: str) -> None:
    if not isinstance(value, bool):
        raise InvalidInput(place, value, "must be true or false", "Write one of them")


_READERS: dict[tuple[str, ...], Callable[..., object]] = {
    ("episodic_memory", "enabled"): _check_switch,
    ("episodic_memory", "long_term_memory_enabled"): _check_switch,
    ("episodic_memory", "short_term_memory_enabled"): _check_switch,
    ("semantic_memory", "enabled"): _check_switch,
    _CAPACITY: _whole,
    _GATHERED: _whole,
    _AGE: _seconds,
    ("server", "host"): memmachine_config.text,
    ("server", "port"): _whole,
    ("session_manager", "database"): memmachine_config.text,
}
"""What keys of the file must be; names of models aside."""
_NAMED: tuple[tuple[ResourceKind, tuple[str, ...]], ...] = (
    ("embedders", ("episodic_memory", "long_term_memory", "embedder")),
    ("rerankers", ("episodic_memory", "long_term_memory", "reranker")),
    ("language_models", ("episodic_memory", "short_term_memory", "llm_model")),
    ("embedders", ("semantic_memory", "embedding_model")),
    ("language_models", ("semantic_memory", "llm_model")),
    ("language_models", ("retrieval_agent", "llm_model")),
    ("rerankers", ("retrieval_agent", "reranker")),
)
"""The keys that name models."""
RESOURCE_KINDS: tuple[ResourceKind, ...] = get_args(ResourceKind)


def _merge(
    base: Mapping[str, Any], patch: Mapping[str, Any], levels: int = _LEVELS
) -> dict[str, Any]:
    """Lay a change over sections; what is not a mapping, or lies deeper, is replaced."""
    merged = dict(base)
    for name, value in patch.items():
        old = merged.get(name)
        deeper = levels > 1 and isinstance(value, Mapping) and isinstance(old, Mapping)
        merged[name] = _merge(old, value, levels - 1) if deeper else value  # type: ignore[arg-type]
    return merged
