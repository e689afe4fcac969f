"""`resources`: language models and rerankers by their ids, as MemMachine's configuration has it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from ekphory.agent.configuration.document import expanded, mapping, refuse_unknown, text
from ekphory.agent.settings import LanguageModel
from ekphory.errors import InvalidInput
from ekphory.models.reranker import RerankingModel
from ekphory.models.reranker_loading import load_reranker

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
    entry = _entry(resources, "language_models", model_id)
    place = f"resources.language_models.{model_id}"
    provider = text(entry.get("provider"), place=f"{place}.provider")
    refuse_unknown([provider], _MODEL_PROVIDERS, place=f"{place}.provider")
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
        name: expanded(config.get(name), place=f"{place}.config.{name}", environment=environment)
        for name in ("model", "api_key", "base_url")
    }
    return LanguageModel(
        id=model_id,
        provider=provider,
        model=text(given["model"], place=f"{place}.config.model"),
        api_key=_optional(given["api_key"], place=f"{place}.config.api_key"),
        base_url=_optional(given["base_url"], place=f"{place}.config.base_url"),
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
    entry = _entry(resources, "rerankers", reranker_id)
    place = f"resources.rerankers.{reranker_id}"
    provider = text(entry.get("provider"), place=f"{place}.provider")
    refuse_unknown([provider], (*_LOADED, *_BUILT_IN), place=f"{place}.provider")
    if provider in _BUILT_IN:
        return None
    config = mapping(entry.get("config"), place=f"{place}.config")
    refuse_unknown(config, _RERANKER_KEYS[provider], place=f"{place}.config")
    given = {
        name: expanded(value, place=f"{place}.config.{name}", environment=environment)
        for name, value in config.items()
    }
    named = text(given.get(_LOADED[provider]), place=f"{place}.config.{_LOADED[provider]}")
    if provider in ("cross-encoder", "ekphory"):
        return load_reranker(named)
    key = given.get("api_key", given.get("cohere_key"))
    api_key = _optional(key, place=f"{place}.config.api_key")
    if provider == "cohere":
        url = text(given.get("base_url") or _COHERE_URL, place=f"{place}.config.base_url")
        return load_reranker(url, protocol="cohere", model=named, api_key=api_key)
    return load_reranker(
        named,
        protocol=_optional(given.get("protocol"), place=f"{place}.config.protocol"),
        model=_optional(given.get("model"), place=f"{place}.config.model"),
        api_key=api_key,
    )


def _entry(resources: Mapping[str, Any], kind: str, wanted: str) -> dict[str, Any]:
    entries = mapping(resources.get(kind), place=f"resources.{kind}")
    if wanted not in entries:
        near = difflib.get_close_matches(wanted, entries, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        known = ", ".join(sorted(entries)) or "none"
        raise InvalidInput(f"resources.{kind}", wanted, "is not there", f"{hint}There is: {known}")
    place = f"resources.{kind}.{wanted}"
    entry = mapping(entries[wanted], place=place)
    refuse_unknown(entry, _ENTRY, place=place)
    return entry


def _optional(value: object, *, place: str) -> str | None:
    return None if value is None else text(value, place=place)
