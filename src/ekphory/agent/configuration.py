"""How the agent works: arguments before the environment before a YAML file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ekphory.agent.provider import AgentSettings, LanguageModel
from ekphory.config import read_section, read_settings, read_variable
from ekphory.errors import InvalidInput, MissingExtra, shorten
from ekphory.models.loading import load_reranker
from ekphory.models.reranker import RerankingModel

# A YAML configuration: read safely, with every unknown key told together with the nearest one.

_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))")
SECTIONS = (
    "logging",
    "episode_store",
    "episodic_memory",
    "retrieval_agent",
    "semantic_memory",
    "session_manager",
    "server",
    "prompt",
    "resources",
)
"""The sections that a MemMachine configuration may have; only some of them concern the agent."""


def read_document(file: Path) -> dict[str, Any]:
    """Read a configuration file.

    Raises:
        InvalidInput: It cannot be read, is not YAML, or has a section that is not known.
        MissingExtra: The YAML reader is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("agent", "A configuration file") from error
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("config", str(file), f"cannot be read: {error}", "Check it") from error
    except yaml.YAMLError as error:
        # The whole message quotes the file, which may hold a key.
        where = getattr(error, "problem_mark", None)
        line = f" in line {where.line + 1}" if where is not None else ""
        raise InvalidInput(
            "config", str(file), f"must be YAML; it is not{line}", "Correct it"
        ) from None
    if document is None:
        return {}
    found = mapping(document, place="config")
    refuse_unknown(found, SECTIONS, place="config")
    return found


def mapping(value: object, *, place: str) -> dict[str, Any]:
    """Return a mapping with text keys.

    Raises:
        InvalidInput: It is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        kind = type(value).__name__
        raise InvalidInput(place, kind, "must be a mapping", "Give `name: value` lines")
    return value


def refuse_unknown(given: Iterable[str], known: Iterable[str], *, place: str) -> None:
    """Refuse the first key that is not known.

    Raises:
        InvalidInput: There is one; names the nearest known key.
    """
    choices = sorted(known)
    for key in given:
        if key not in choices:
            near = difflib.get_close_matches(key, choices, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise InvalidInput(
                place, key, "must be a known key", f"{hint}Known are {', '.join(choices)}"
            )


def expand_variable(
    value: object, *, place: str, environment: Mapping[str, str] | None = None
) -> object:
    """Put variables in the place of `$NAME` and `${NAME}`, where that is all that a text says.

    Raises:
        InvalidInput: The variable is not set.
    """
    found = _VARIABLE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return value
    name = found["braced"] or found["plain"]
    given = read_variable(name, environment)
    if given is None:
        raise InvalidInput(place, f"${name}", "this variable is not set", f"Set {name}")
    return given


def text(value: object, *, place: str) -> str:
    """Return a text.

    Raises:
        InvalidInput: It is something else, or empty.
    """
    if not isinstance(value, str) or not value.strip():
        shown = "***" if place.endswith("key") else shorten(value)
        raise InvalidInput(place, shown, "must be a string", "Give one")
    return value.strip()


# `resources`: language models and rerankers by their ids, as MemMachine's configuration has it.

RESOURCES = ("databases", "embedders", "language_models", "rerankers")
_ENTRY = ("provider", "config")
_MODEL_PROVIDERS = ("openai-responses", "openai-chat-completions", "amazon-bedrock", "litellm")
_MODEL_KEYS = (
    "model",
    "api_key",
    "base_url",
    "reasoning_effort",
    "max_retry_interval_seconds",
    "metrics_factory_id",
    "user_metrics_labels",
)
# Provider: which key of its configuration says what to load, and the protocol of a service.
_LOADED = {"cross-encoder": "model_name", "ekphory": "model", "http": "url", "cohere": "model"}
# Orderings of words and embeddings, which every search here does already.
_BUILT_IN = ("identity", "bm25", "embedder", "rrf-hybrid")
_RERANKER_KEYS = {
    "cross-encoder": ("model_name", "max_input_length"),
    "ekphory": ("model",),
    "http": ("url", "protocol", "model", "api_key"),
    "cohere": ("model", "api_key", "cohere_key", "base_url"),
}
_COHERE_URL = "https://api.cohere.com"

Environment = Mapping[str, str] | None


def language_model(
    resources: Mapping[str, Any], model_id: str, *, environment: Environment = None
) -> LanguageModel:
    """Find a language model.

    Args:
        resources: The section.
        model_id: The model's id in it.
        environment: Where variables are read.

    Raises:
        InvalidInput: There is none of that id, or it is not complete.
    """
    place = f"resources.language_models.{model_id}"
    entry, provider = _find_entry(resources, "language_models", model_id, _MODEL_PROVIDERS)
    if not provider.startswith("openai"):
        raise InvalidInput(
            f"{place}.provider",
            provider,
            "the agent cannot speak to it",
            "Take openai-responses, or the agent's provider anthropic or local",
        )
    config = mapping(entry.get("config"), place=f"{place}.config")
    refuse_unknown(config, _MODEL_KEYS, place=f"{place}.config")
    given = {
        name: expand_variable(
            config.get(name), place=f"{place}.config.{name}", environment=environment
        )
        for name in ("model", "api_key", "base_url")
    }
    return LanguageModel(
        id=model_id,
        provider=provider,
        model=text(given["model"], place=f"{place}.config.model"),
        api_key=_read_optional(given["api_key"], place=f"{place}.config.api_key"),
        base_url=_read_optional(given["base_url"], place=f"{place}.config.base_url"),
    )


def reranker(
    resources: Mapping[str, Any], reranker_id: str, *, environment: Environment = None
) -> RerankingModel | None:
    """Find and load a reranker; None for those whose work every search here does already.

    Raises:
        InvalidInput: There is none of that id, or it is not complete.
        MissingExtra: It needs the `[torch]` extra.
        ModelError: It cannot be loaded.
    """
    place = f"resources.rerankers.{reranker_id}"
    entry, provider = _find_entry(resources, "rerankers", reranker_id, (*_LOADED, *_BUILT_IN))
    if provider in _BUILT_IN:
        return None
    config = mapping(entry.get("config"), place=f"{place}.config")
    refuse_unknown(config, _RERANKER_KEYS[provider], place=f"{place}.config")
    given = {
        name: expand_variable(value, place=f"{place}.config.{name}", environment=environment)
        for name, value in config.items()
    }
    named = text(given.get(_LOADED[provider]), place=f"{place}.config.{_LOADED[provider]}")
    if provider in ("cross-encoder", "ekphory"):
        return load_reranker(named)
    key = given.get("api_key", given.get("cohere_key"))
    api_key = _read_optional(key, place=f"{place}.config.api_key")
    if provider == "cohere":
        url = text(given.get("base_url") or _COHERE_URL, place=f"{place}.config.base_url")
        return load_reranker(url, protocol="cohere", model=named, api_key=api_key)
    return load_reranker(
        named,
        protocol=_read_optional(given.get("protocol"), place=f"{place}.config.protocol"),
        model=_read_optional(given.get("model"), place=f"{place}.config.model"),
        api_key=api_key,
    )


def _find_entry(
    resources: Mapping[str, Any], kind: str, wanted: str, providers: Iterable[str]
) -> tuple[dict[str, Any], str]:
    """Return an entry, and which of the providers it names."""
    entries = mapping(resources.get(kind), place=f"resources.{kind}")
    if wanted not in entries:
        near = difflib.get_close_matches(wanted, entries, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        known = ", ".join(sorted(entries)) or "none"
        raise InvalidInput(f"resources.{kind}", wanted, "is not there", f"{hint}There is: {known}")
    place = f"resources.{kind}.{wanted}"
    entry = mapping(entries[wanted], place=place)
    refuse_unknown(entry, _ENTRY, place=place)
    provider = text(entry.get("provider"), place=f"{place}.provider")
    refuse_unknown([provider], providers, place=f"{place}.provider")
    return entry, provider


def _read_optional(value: object, *, place: str) -> str | None:
    return None if value is None else text(value, place=place)


# Reads how the agent works: arguments before the environment before the file before defaults.

SECTION = "retrieval_agent"
KEYS = tuple(field.name for field in fields(AgentSettings))
_NUMBERS = ("agent_session_timeout_seconds", "agent_session_max_retry_interval_seconds")
_WHOLE_NUMBERS = ("agent_session_max_combined_calls", "anthropic_max_output_tokens")
_YES_OR_NO = ("agent_session_log_raw_output",)
_SAID = {"true": True, "yes": True, "on": True, "1": True}
_DENIED = {"false": False, "no": False, "off": False, "0": False}


def read_agent_settings(
    file: str | Path | None = None,
    *,
    arguments: Mapping[str, object] | None = None,
    environment: Environment = None,
) -> AgentSettings:
    """Read the section `retrieval_agent` and what it names in `resources`.

    Args:
        file: A YAML file in MemMachine's form; None takes `EKPHORY_CONFIG`, and none where that
            is not set.
        arguments: Keys of the section, which go before `EKPHORY_RETRIEVAL_AGENT_…`, which goes
            before the file. None for a key says nothing.
        environment: Where variables are read; None for those of the process.

    Raises:
        InvalidInput: A key is not known, a value cannot be used, or an id is not in `resources`.
        MissingExtra: A file is named and the YAML reader is not installed.
    """
    named = file if file is not None else read_settings(environment).config
    document = {} if named is None else read_document(Path(named).expanduser())
    section = mapping(document.get(SECTION), place=SECTION)
    refuse_unknown(section, KEYS, place=SECTION)
    given = dict(arguments or {})
    refuse_unknown(given, KEYS, place=SECTION)
    from_environment = read_section(SECTION, KEYS, environment)
    chosen: dict[str, object] = {
        name: value
        for source in (section, from_environment, given)
        for name, value in source.items()
        if value is not None
    }
    values = {
        name: _convert(
            name, expand_variable(value, place=f"{SECTION}.{name}", environment=environment)
        )
        for name, value in chosen.items()
    }
    return AgentSettings(**_with_resources(values, document, environment))


def _with_resources(
    values: dict[str, Any], document: Mapping[str, Any], environment: Environment
) -> dict[str, Any]:
    """Put models in the place of their ids, after MemMachine's fallbacks."""
    resources = mapping(document.get("resources"), place="resources")
    refuse_unknown(resources, RESOURCES, place="resources")
    found = dict(values)
    model_id = found.pop("llm_model", None) or _find_other_model(document)
    if model_id is not None:
        found["llm_model"] = language_model(resources, model_id, environment=environment)
    reranker_id = found.pop("reranker", None) or _find_elsewhere(
        document, "episodic_memory", "long_term_memory", "reranker"
    )
    if reranker_id is not None:
        found["reranker"] = reranker(resources, reranker_id, environment=environment)
    return found


def _find_other_model(document: Mapping[str, Any]) -> str | None:
    short_term = _find_elsewhere(document, "episodic_memory", "short_term_memory", "llm_model")
    return short_term or _find_elsewhere(document, "semantic_memory", "llm_model")


def _find_elsewhere(document: Mapping[str, Any], *path: str) -> str | None:
    *sections, key = path
    found: Mapping[str, Any] = document
    for section in sections:
        found = mapping(found.get(section), place=section)
    value = found.get(key)
    return None if value is None else text(value, place=".".join(path))


def _convert(name: str, value: object) -> object:
    """Return a value as its key wants it: variables of the environment are texts."""
    place = f"{SECTION}.{name}"
    if name in _YES_OR_NO:
        return _yes_or_no(value, place)
    if name in _NUMBERS or name in _WHOLE_NUMBERS:
        return _number(value, place, whole=name in _WHOLE_NUMBERS)
    return text(value, place=place)


def _yes_or_no(value: object, place: str) -> bool:
    if isinstance(value, bool):
        return value
    read = (_SAID | _DENIED).get(str(value).strip().lower())
    if read is None:
        raise InvalidInput(place, value, "must be true or false", "Write one of them")
    return read


def _number(value: object, place: str, *, whole: bool) -> float | int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        return int(str(value)) if whole else float(str(value))
    except ValueError:
        kind = "whole number" if whole else "number"
        raise InvalidInput(place, value, f"must be a {kind}", "Give one") from None
