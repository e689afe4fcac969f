"""MemMachine's configuration in YAML: its sections, and the models that `resources` names.

It is read safely, and every unknown key is told together with the nearest one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ekphory.config import read_variable
from ekphory.errors import InvalidInput, MissingExtra, shorten, suggest
from ekphory.models.chat import Chat
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import load_chat, load_embedder, load_reranker
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval import ranking_rerankers

if TYPE_CHECKING:
    from ekphory.models.bedrock import BedrockSettings

_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))")
_KNOWN: dict[str, Any] = tomllib.loads(
    files(__package__).joinpath("memmachine_config.toml").read_text("utf-8")
)


def read_document(
    name: str | Path, *, check: Callable[[dict[str, Any]], None] | None = None
) -> dict[str, Any]:
    """Read a configuration file.

    Args:
        name: The file.
        check: Refuses what its reader could not use; None where any value will do.

    Raises:
        InvalidInput: It cannot be read, is not YAML, has a section or a key that is not known, or
            does not pass; names the file.
        MissingExtra: The YAML reader is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("agent", "A configuration file") from error
    file = Path(name).expanduser()
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("config", str(file), f"cannot be read: {error}", "Check it") from error
    except yaml.YAMLError as error:
        # The whole message quotes the file, which may hold a key.
        where = getattr(error, "problem_mark", None)
        line = f" in line {where.line + 1}" if where is not None else ""
        remedy = "Correct it"
        raise InvalidInput("config", str(file), f"must be YAML; it is not{line}", remedy) from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        problem = "must hold a mapping of sections"
        raise InvalidInput("config", str(file), problem, "Give `name: value` lines")
    try:
        found = mapping(document, place="config")
        _check_keys(found)
        if check is not None:
            check(found)
    except InvalidInput as error:
        error.args = (f"{file}: {error}",)
        raise
    return found


def _check_keys(document: Mapping[str, Any]) -> None:
    """Refuse the first section, and the first key of one that is read, that is not known."""
    refuse_unknown(document, _KNOWN["sections"], place="config")
    for place, known in _KNOWN["read"].items():
        section = mapping(find_value(document, *place.split(".")), place=place)
        refuse_unknown(section, known, place=place)


def find_value(document: Mapping[str, Any], *path: str) -> Any:  # noqa: ANN401  any key
    """Return what a key of a section says; None where it says nothing, or an empty text."""
    *sections, key = path
    for place in sections:
        document = mapping(document.get(place), place=place)
    found = document.get(key)
    return None if found == "" else found


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
    """Refuse the first key that is neither known nor passed over at its place.

    Raises:
        InvalidInput: There is one; names the nearest known key.
    """
    choices = sorted(known)
    for key in given:
        if key not in choices and key not in _KNOWN["passed_over"].get(place, ()):
            remedy = f"{suggest(key, choices)}Known are {', '.join(choices) or 'none'}"
            raise InvalidInput(place, key, "is not known", remedy)


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


def _expand_all(value: object, *, place: str, environment: Environment) -> object:
    """Put variables in place in all that a value holds; see `expand_variable`."""
    if isinstance(value, Mapping):
        return {
            key: _expand_all(each, place=f"{place}.{key}", environment=environment)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_expand_all(each, place=place, environment=environment) for each in value]
    return expand_variable(value, place=place, environment=environment)


def names_variable(value: object) -> bool:
    """Return whether a value, or something that it holds, would be read as a variable."""
    if isinstance(value, Mapping):
        return any(map(names_variable, value.values()))
    if isinstance(value, list):
        return any(map(names_variable, value))
    return isinstance(value, str) and value.strip().startswith("$")


def text(value: object, *, place: str) -> str:
    """Return a text.

    Raises:
        InvalidInput: It is something else, or empty.
    """
    if not isinstance(value, str) or not value.strip():
        shown = "***" if place.endswith("key") else shorten(value)
        raise InvalidInput(place, shown, "must be a string", "Give one")
    return value.strip()


# `resources`: models by their ids, as MemMachine's configuration has it.

OPENAI_URL = "https://api.openai.com/v1"
_COHERE_URL = "https://api.cohere.com"

Environment = Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """An entry of `resources.language_models`.

    Attributes:
        id: Its name in the configuration.
        provider: What it speaks: `openai-responses` and the like.
        model: The model's name at the service.
        api_key: The service's key; never shown.
        base_url: The service's address; None for the provider's own.
    """

    id: str
    provider: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None

    @property
    def holds_sessions(self) -> bool:
        """Whether it speaks OpenAI's protocols, in which an agent's session is held."""
        return self.provider.startswith("openai")


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
    found = _Configured.find(resources, "language_models", model_id, environment)
    return LanguageModel(
        id=model_id,
        provider=found.provider,
        model=found.text(_KNOWN["language_models"][found.provider][0]),
        api_key=found.optional("api_key"),
        base_url=found.optional("base_url"),
    )


def load_language_model(
    resources: Mapping[str, Any], model_id: str, *, environment: Environment = None
) -> Chat:
    """Find and load a language model; those of OpenAI's are asked for chat completions.

    Raises:
        InvalidInput: There is none of that id, or it is not complete.
        MissingExtra: It needs the `[bedrock]` or the `[litellm]` extra.
    """
    found = _Configured.find(resources, "language_models", model_id, environment)
    match found.provider:
        case "amazon-bedrock":
            from ekphory.models.bedrock import BedrockChat  # boto3 is slow to import, as LiteLLM is

            return BedrockChat(found.bedrock())
        case "litellm":
            from ekphory.models.litellm_chat import LiteLlmChat, LiteLlmSettings

            settings = LiteLlmSettings(
                model=found.text("model"),
                api_key=found.optional("api_key"),
                api_base=found.optional("api_base"),
                api_version=found.optional("api_version"),
                extra_kwargs=found.mapping("extra_kwargs"),
            )
            return LiteLlmChat(settings)
    return load_chat(
        found.optional("base_url") or OPENAI_URL,
        model=found.text("model"),
        api_key=found.optional("api_key"),
    )


def embedder(
    resources: Mapping[str, Any], embedder_id: str, *, environment: Environment = None
) -> EmbeddingModel:
    """Find and load an embedder.

    Raises:
        InvalidInput: There is none of that id, or it is not complete.
        MissingExtra: It needs the `[torch]` or the `[bedrock]` extra.
        ModelError, ServiceError: It cannot be loaded, or its service does not answer.
    """
    found = _Configured.find(resources, "embedders", embedder_id, environment)
    if found.provider == "amazon-bedrock":
        from ekphory.models.bedrock import BedrockEmbedder

        return BedrockEmbedder(found.bedrock())
    if found.provider != "openai":
        return load_embedder(found.text("model"))
    return load_embedder(
        found.optional("base_url") or OPENAI_URL,
        model=found.text("model"),
        api_key=found.optional("api_key"),
        dimensions=found.number("dimensions", whole=True),
        # Blanks at their ends count.
        query_prefix=str(found.value("query_prefix") or ""),
        passage_prefix=str(found.value("passage_prefix") or ""),
    )


def reranker(
    resources: Mapping[str, Any], reranker_id: str, *, environment: Environment = None
) -> RerankingModel:
    """Find and load a reranker.

    Raises:
        InvalidInput: There is none of that id, it is not complete, or it is part of itself.
        MissingExtra: It needs the `[torch]` or the `[bedrock]` extra.
        ModelError: It cannot be loaded.
    """
    found = check_resource(resources, "rerankers", reranker_id, environment=environment)
    match found.provider:
        case "identity":
            return ranking_rerankers.IdentityReranker(reranker_id)
        case "bm25":
            numbers = {name: found.number(name) for name in ("k1", "b")}
            given = {name: value for name, value in numbers.items() if value is not None}
            return ranking_rerankers.Bm25Reranker(reranker_id, **given)
        case "embedder":
            named = found.text("embedder_id")
            return ranking_rerankers.EmbedderReranker(
                reranker_id, embedder(resources, named, environment=environment)
            )
        case "rrf-hybrid":
            parts = tuple(
                reranker(resources, each, environment=environment)
                for each in found.texts("reranker_ids")
            )
            return ranking_rerankers.RankFusionReranker(
                reranker_id, parts, k=found.number("k") or 60
            )
        case "cross-encoder" | "ekphory" as provider:
            return load_reranker(found.text(_KNOWN["rerankers"][provider][0]))
    return _load_served(found)


def _load_served(found: _Configured) -> RerankingModel:
    if found.provider == "amazon-bedrock":
        from ekphory.models.bedrock import BedrockReranker

        return BedrockReranker(found.bedrock())
    if found.provider == "cohere":
        return load_reranker(
            found.optional("base_url") or _COHERE_URL,
            protocol="cohere",
            model=found.text("model"),
            api_key=found.optional("api_key") or found.optional("cohere_key"),
        )
    return load_reranker(
        found.text("url"),
        protocol=found.optional("protocol"),
        model=found.optional("model"),
        api_key=found.optional("api_key"),
    )


def check_owns_credentials(provider: str, config: Mapping[str, Any]) -> None:
    """Refuse a model that would be asked with the credentials of this machine.

    Args:
        provider: Whose model it is.
        config: Its keys, from somebody who may declare models and not read this machine's keys.

    Raises:
        InvalidInput: It names no credentials of its own, or LiteLLM might look for some.
    """
    of_file = "The configuration file may leave that to the environment"
    if provider == "litellm":
        problem = "reads keys of the environment, and is declared in the file alone"
        raise InvalidInput("provider", provider, problem, "Declare it there")
    if provider == "amazon-bedrock" and not config.get("aws_access_key_id"):
        problem = "must be given with a model that is declared over HTTP"
        raise InvalidInput("aws_access_key_id", None, problem, of_file)


def check_resource(
    resources: Mapping[str, Any],
    kind: str,
    wanted: str,
    *,
    environment: Environment = None,
    within: tuple[str, ...] = (),
) -> _Configured:
    """Return a resource that can be made, as far as that is known without loading it.

    Args:
        resources: The section.
        kind: `embedders`, `language_models` or `rerankers`.
        wanted: The resource's id.
        environment: Where variables are read.
        within: The rerankers that fuse it with others.

    Raises:
        InvalidInput: There is none of that id, it is not complete, or it is part of itself.
    """
    found = _Configured.find(resources, kind, wanted, environment)
    if wanted in within:
        raise InvalidInput(found.place, wanted, "is part of itself", "Name others")
    match found.provider:
        case "rrf-hybrid":
            for each in found.texts("reranker_ids"):
                check_resource(
                    resources, kind, each, environment=environment, within=(*within, wanted)
                )
        case "embedder":
            check_resource(resources, "embedders", found.text("embedder_id"))
        case provider if provider not in ("identity", "bm25"):
            first = _KNOWN[kind][provider][0]
            # A variable may be missing as long as nothing asks for the model.
            text(found.config.get(first), place=f"{found.place}.{first}")
    return found


@dataclass(frozen=True, slots=True)
class _Configured:
    """The configuration of one resource.

    Attributes:
        place: Where it stands, as errors name it.
        provider: What it is made by.
        config: Its keys, all of them known.
        environment: Where variables are read.
    """

    place: str
    provider: str
    config: Mapping[str, object]
    environment: Environment

    @classmethod
    def find(
        cls, resources: Mapping[str, Any], kind: str, wanted: str, environment: Environment
    ) -> _Configured:
        """Return a resource of one of the providers that are known, with their keys."""
        entry, provider = _find_entry(resources, kind, wanted)
        place = f"resources.{kind}.{wanted}.config"
        config = mapping(entry.get("config"), place=place)
        refuse_unknown(config, _KNOWN[kind][provider], place=place)
        return cls(place, provider, config, environment)

    def value(self, name: str) -> object:
        """Return a key with its variable in place; None where it is left out."""
        place = f"{self.place}.{name}"
        return expand_variable(self.config.get(name), place=place, environment=self.environment)

    def text(self, name: str) -> str:
        """Return a key that must be there."""
        return text(self.value(name), place=f"{self.place}.{name}")

    def optional(self, name: str) -> str | None:
        """Return a key that may be left out."""
        return None if self.config.get(name) is None else self.text(name)

    def texts(self, name: str) -> list[str]:
        """Return the texts of a list that must hold some."""
        found = self.config.get(name)
        if not isinstance(found, list) or not found:
            raise InvalidInput(f"{self.place}.{name}", found, "must be a list", "Name some")
        return [text(each, place=f"{self.place}.{name}") for each in found]

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a mapping that may be left out, with variables in place at any depth."""
        place = f"{self.place}.{name}"
        found = _expand_all(self.config.get(name), place=place, environment=self.environment)
        return mapping(found, place=place)

    def bedrock(self) -> BedrockSettings:
        """Return what a model of Amazon Bedrock is asked by."""
        from ekphory.models.bedrock import BedrockSettings

        return BedrockSettings(
            model_id=self.text("model_id"),
            region=self.optional("region"),
            aws_access_key_id=self.optional("aws_access_key_id"),
            aws_secret_access_key=self.optional("aws_secret_access_key"),
            aws_session_token=self.optional("aws_session_token"),
            additional_model_request_fields=self.mapping("additional_model_request_fields"),
        )

    def number(self, name: str, *, whole: bool = False) -> Any:  # noqa: ANN401  a float, or whole
        """Return a number that may be left out."""
        found = self.value(name)
        if found is None:
            return None
        number = read_number(found, f"{self.place}.{name}", whole=whole)
        return int(number) if whole else number


def _find_entry(resources: Mapping[str, Any], kind: str, wanted: str) -> tuple[dict[str, Any], str]:
    """Return an entry, and which of the known providers it names."""
    entries = mapping(resources.get(kind), place=f"resources.{kind}")
    if wanted not in entries:
        remedy = f"{suggest(wanted, entries)}There is: {', '.join(sorted(entries)) or 'none'}"
        raise InvalidInput(f"resources.{kind}", wanted, "is not there", remedy)
    place = f"resources.{kind}.{wanted}"
    entry = mapping(entries[wanted], place=place)
    refuse_unknown(entry, _KNOWN["entry"], place=place)
    provider = text(entry.get("provider"), place=f"{place}.provider")
    refuse_unknown([provider], _KNOWN[kind], place=f"{place}.provider")
    return entry, provider


def read_number(value: object, place: str, *, whole: bool) -> float | int:
    """Return a number; variables of the environment are texts.

    Raises:
        InvalidInput: It is something else.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        return int(str(value)) if whole else float(str(value))
    except ValueError:
        kind = "whole number" if whole else "number"
        raise InvalidInput(place, value, f"must be a {kind}", "Give one") from None
