"""How the agent works: arguments before the environment before a YAML file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from ekphory.agent.provider import AgentSettings
from ekphory.config import read_section, read_settings
from ekphory.errors import InvalidInput
from ekphory.memmachine_config import (
    Environment,
    check_resource,
    expand_variable,
    find_value,
    language_model,
    mapping,
    read_document,
    read_number,
    refuse_unknown,
    reranker,
    text,
)
from ekphory.threads import ForkSafeLock

SECTION = "retrieval_agent"
_DEFAULTS = {field.name: field.default for field in fields(AgentSettings)}
KEYS = tuple(_DEFAULTS)
_YES, _NO = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


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
    document = {} if named is None else read_document(named)
    return make_agent_settings(document, arguments=arguments, environment=environment)


def current_agent_settings() -> AgentSettings:
    """Return what `read_agent_settings` reads, once for a file and variables that are the same.

    A model that the file names is loaded once.

    Raises:
        InvalidInput, MissingExtra: As `read_agent_settings`.
    """
    named = read_settings().config
    file = None if named is None else Path(named).expanduser()
    if file is None or not file.is_file():
        return read_agent_settings()
    state = file.stat()
    environment = frozenset(os.environ.items())
    with _reading:
        return _read_once(file.resolve(), state.st_mtime_ns, state.st_size, environment)


_reading = ForkSafeLock()
"""Lets threads wait for a model that another one loads."""


@lru_cache(maxsize=4)
def _read_once(
    file: Path, _changed: int, _size: int, environment: frozenset[tuple[str, str]]
) -> AgentSettings:
    return read_agent_settings(file, environment=dict(environment))


def make_agent_settings(
    document: Mapping[str, Any],
    *,
    arguments: Mapping[str, object] | None = None,
    environment: Environment = None,
) -> AgentSettings:
    """Return the settings that a configuration means; otherwise as `read_agent_settings`."""
    section = mapping(document.get(SECTION), place=SECTION)
    from_environment = read_section(SECTION, KEYS, environment)
    values = _read_values((section, from_environment, dict(arguments or {})), environment)
    return AgentSettings(**_with_resources(values, document, environment))


def check_agent_section(document: Mapping[str, Any]) -> None:
    """Check what a configuration says of the agent, without loading a model.

    Raises:
        InvalidInput: A key is not known, a value cannot be used, or an id is not in `resources`.
    """
    values = _read_values((mapping(document.get(SECTION), place=SECTION),), None)
    resources = mapping(document.get("resources"), place="resources")
    for name, kind in (("llm_model", "language_models"), ("reranker", "rerankers")):
        if (named := values.pop(name, None)) is not None:
            check_resource(resources, kind, str(named))
    AgentSettings(**values)


def _read_values(
    sources: Iterable[Mapping[str, object]], environment: Environment
) -> dict[str, Any]:
    """Return what is said of each key, the last word of it, with variables in place."""
    chosen: dict[str, object] = {}
    for source in sources:
        refuse_unknown(source, KEYS, place=SECTION)
        chosen |= {name: value for name, value in source.items() if value is not None}
    return {
        name: _convert(
            name, expand_variable(chosen[name], place=f"{SECTION}.{name}", environment=environment)
        )
        for name in KEYS
        if name in chosen
    }


def _with_resources(
    values: dict[str, Any], document: Mapping[str, Any], environment: Environment
) -> dict[str, Any]:
    """Put models in the place of their ids, after MemMachine's fallbacks."""
    resources = mapping(document.get("resources"), place="resources")
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
    value = find_value(document, *path)
    return None if value is None else text(value, place=".".join(path))


def _convert(name: str, value: object) -> object:
    """Return a value as its key wants it: variables of the environment are texts."""
    place = f"{SECTION}.{name}"
    default = _DEFAULTS[name]
    if isinstance(default, bool):
        return _yes_or_no(value, place)
    if isinstance(default, int | float):
        return read_number(value, place, whole=isinstance(default, int))
    return text(value, place=place)


def _yes_or_no(value: object, place: str) -> bool:
    if isinstance(value, bool):
        return value
    said = str(value).strip().lower()
    if said not in _YES | _NO:
        raise InvalidInput(place, value, "must be true or false", "Write one of them")
    return said in _YES
