"""Settings from the environment; no other module reads it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from platformdirs import user_data_path

from ekphory import legacy
from ekphory.errors import InvalidInput

PREFIX = "EKPHORY_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds where a command line says nothing.

    Attributes:
        store: Directory or Lance URI of the store, or the URL of a server; by default a folder in
            the user's data directory.
        api_key: The key for a store that is the URL of a server.
        embedder: What `load_embedder` takes; by default the bundled model.
        embedder_model: The model to ask an embedding service for.
        embedder_api_key: The key of an embedding service.
        embedder_query_prefix: What an embedding service is sent before every query. Blanks
            around it count, and a backslash before an `n` stands for a new line.
        embedder_passage_prefix: What it is sent before every passage, likewise.
        embedder_options: How torch loads the embedder, as a JSON object:
            `{"dtype": "bfloat16", "tokens_per_batch": 8192}`; see docs/models.md.
        reranker: What `load_reranker` takes: a URL, a path or a hub id, or `none` for none; by
            default the bundled one.
        reranker_protocol: What a reranking service speaks: `jina`, the default, `cohere`, `tei` or
            `memos`.
        reranker_model: The model to ask a reranking service for.
        reranker_api_key: The key of a reranking service.
        reranker_scores: Whether the reranker gives `probability`, the default, or `logit`.
        reranker_calibration: File of `ekphory train reranker-calibration` for the reranker.
        reranker_options: How torch or vLLM loads the reranker, likewise.
        preset: Name of the pipeline of searches that name none; by default `balanced`.
        chat_url: The address of the chat service; by default none is asked.
        chat_model: The model to ask the chat service for.
        chat_api_key: The key of the chat service.
        entity_url: The address of a service of named entities, which reads what is captured in the
            bundled model's place.
        entity_api_key: The key of that service.
        label_url: The address of a service of zero-shot classification, which says which labels
            fit what is captured, in the bundled reranker's place.
        label_api_key: The key of that service.
        audit_log: File in which a server notes who read, wrote and forgot what; by default none.
        serve_key: A key of the server beside those of its catalog, with all rights.
        extraction: What the chat service learns from messages: `profile`, the default, which is
            all that it can, `categories` or `off`.
        config: The YAML file that configures the server and the retrieval agent, in MemMachine's
            form.
        record_searches: How many of the newest searches are recorded beside the store, for the
            inspector, up to 10,000; by default none.
        vector_index: The index of large scopes and its parameters, as LanceDB has them, such as
            `ivf_pq num_partitions=10 num_sub_vectors=64`; by default `ivf_rq`.
        detect_changes: `0` for a store whose new memories are not compared with earlier ones; by
            default they are.
        keep_snapshots: `0` for a store that keeps nothing of large scopes on disk for the next
            process's first search; by default it does.
        daemon: `0` for a command line that neither starts a resident process nor has one answer;
            by default it does both.
        org: The organisation of the scope; by default unbound.
        project: The project of the scope; by default unbound.
        agent: The agent of the scope; by default unbound.
        user: The user of the scope; by default unbound.
        session: The session of the scope; by default unbound.
    """

    store: str
    api_key: str | None = field(default=None, repr=False)
    embedder: str | None = None
    embedder_model: str | None = None
    embedder_api_key: str | None = field(default=None, repr=False)
    embedder_query_prefix: str | None = None
    embedder_passage_prefix: str | None = None
    embedder_options: str | None = None
    reranker: str | None = None
    reranker_protocol: str | None = None
    reranker_model: str | None = None
    reranker_api_key: str | None = field(default=None, repr=False)
    reranker_scores: str | None = None
    reranker_calibration: str | None = None
    reranker_options: str | None = None
    preset: str | None = None
    chat_url: str | None = None
    chat_model: str | None = None
    chat_api_key: str | None = field(default=None, repr=False)
    entity_url: str | None = None
    entity_api_key: str | None = field(default=None, repr=False)
    label_url: str | None = None
    label_api_key: str | None = field(default=None, repr=False)
    audit_log: str | None = None
    serve_key: str | None = field(default=None, repr=False)
    extraction: str | None = None
    config: str | None = None
    record_searches: str | None = None
    vector_index: str | None = None
    detect_changes: str | None = None
    keep_snapshots: str | None = None
    daemon: str | None = None
    org: str | None = None
    project: str | None = None
    agent: str | None = None
    user: str | None = None
    session: str | None = None


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read `EKPHORY_STORE`, `EKPHORY_EMBEDDER`, `EKPHORY_PROJECT` and their like.

    Every field of `Settings` has a variable of its name in capitals, after `EKPHORY_`.

    Args:
        environment: Where to read; None for that of the process. Blanks around a value do not
            count, and an empty value counts as none.

    Raises:
        InvalidInput: A calibration is named and no reranker that it could be of.
    """
    given = os.environ if environment is None else environment
    values = {"store": default_store()}
    for name in (setting.name for setting in fields(Settings)):
        if (value := given.get(PREFIX + name.upper(), "")).strip():
            is_prefix = name.endswith("_prefix")
            values[name] = value.replace("\\n", "\n") if is_prefix else value.strip()
    settings = Settings(**values)
    if settings.reranker_calibration is not None and settings.reranker is None:
        name, problem = f"{PREFIX}RERANKER_CALIBRATION", "names a calibration and no reranker"
        remedy = "Name the reranker in EKPHORY_RERANKER"
        raise InvalidInput(name, settings.reranker_calibration, problem, remedy)
    return settings


def read_section(
    section: str, names: Iterable[str], environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Read the variables of a section, such as `EKPHORY_RETRIEVAL_AGENT_LLM_MODEL`.

    Args:
        section: Name of the section.
        names: Names of its keys.
        environment: As for `read_settings`.

    Returns:
        The values that are given, by key.
    """
    given = os.environ if environment is None else environment
    prefix = f"{PREFIX}{section.upper()}_"
    read = {name: given.get(prefix + name.upper(), "").strip() for name in names}
    return {name: value for name, value in read.items() if value}


def read_variable(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """Read a variable that a configuration names, as in `$OPENAI_API_KEY`; None if empty."""
    given = os.environ if environment is None else environment
    return given.get(name, "").strip() or None


def read_switch(name: str) -> bool:
    """Return whether the variable of this name is on, which it is unless it is switched off.

    Raises:
        InvalidInput: It is neither `0` nor `1`.
    """
    name = f"{PREFIX}{name}"
    given = read_variable(name) or "1"
    if given not in ("0", "1"):
        raise InvalidInput(name, given, "must be 0 or 1", "Give 0 to switch it off")
    return given == "1"


def read_vector_index() -> tuple[str | None, dict[str, int]]:
    """Return the kind of vector index that is wanted, None where nobody says, and its parameters.

    Raises:
        InvalidInput: `EKPHORY_VECTOR_INDEX` is not a name and `parameter=number` pairs.
    """
    name = f"{PREFIX}VECTOR_INDEX"
    kind, _, told = (read_variable(name) or "").partition(" ")
    parameters = dict(pair.partition("=")[::2] for pair in told.split())
    for key, value in parameters.items():
        if not value.isdecimal() or not int(value):
            remedy = f"Write {key}=8, or another number above 0"
            raise InvalidInput(name, f"{key}={value}", "must be parameter=number", remedy)
    return kind.lower() or None, {key: int(value) for key, value in parameters.items()}


MOST_RECORDED = 10_000


def read_recorded() -> int:
    """Return how many searches are to be recorded, which `EKPHORY_RECORD_SEARCHES` says.

    Raises:
        InvalidInput: It is not a number from 0 to 10,000.
    """
    name = f"{PREFIX}RECORD_SEARCHES"
    given = read_variable(name) or "0"
    if not given.isdecimal() or int(given) > MOST_RECORDED:
        problem = f"must be a number from 0 to {MOST_RECORDED:,}"
        raise InvalidInput(name, given, problem, "Give 1000, or 0 to record none")
    return int(given)


def default_store() -> str:
    """Return the store's place in the user's data directory."""
    folder = legacy.choose_data_folder(user_data_path("ekphory", appauthor=False))
    return str(folder / "memories")
