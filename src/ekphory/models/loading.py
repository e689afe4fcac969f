"""Finds the model that a name, a path or a URL means, and those that the settings name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from ekphory.config import PREFIX, Settings
from ekphory.errors import InvalidInput
from ekphory.models import services
from ekphory.models.chat import ChatSettings, OpenAIChat
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.model_record import RECORD_FILE, CalibrationCard, is_reranker
from ekphory.models.reranker import (
    BUNDLED_RERANKERS,
    SMALL_RERANKER,
    Judgement,
    JudgingReranker,
    LocalReranker,
    RerankingModel,
    RerankPassage,
    RerankQuery,
    ScoreScale,
    bundled_name,
    bundled_reranker,
    check_scores,
    is_remote,
    judge_passages,
    log_odds,
    model_id,
)

if TYPE_CHECKING:
    from ekphory.models.onnx_models import OnnxEmbedder
    from ekphory.models.torch_embedder import TorchEmbedder, TorchOptions


ONNX_FOLDER = "onnx"
"""Where a directory with float weights keeps the ONNX model that was made from them."""
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def find_directory(name: str, *, field: str) -> Path | None:
    """Return the directory, or None where the name is a hub id.

    Args:
        name: What the caller gave.
        field: What the caller knows it by.

    Raises:
        InvalidInput: It is neither.
    """
    directory = Path(name).expanduser()
    if name and directory.is_dir():
        return directory
    looks_like_path = name.startswith((".", "~")) or directory.is_absolute() or directory.exists()
    if looks_like_path or not _HUB_ID.fullmatch(name):
        remedy = "Give a directory, a hub id like 'owner/model', or 'bundled'"
        url = "the URL of a service begins with http:// or https://."
        raise InvalidInput(field, name, "no such model directory", f"{remedy}; {url}")
    return None


def _check_runtime(runtime: str | None, known: object) -> None:
    names = get_args(known)
    if runtime is not None and runtime not in names:
        choices = f"Choose from {', '.join(names)}, or leave it out"
        raise InvalidInput("runtime", runtime, "must be one that is known", choices)


def _onnx_directory(directory: Path | None, is_model: Callable[[Path], bool]) -> Path | None:
    """Return the directory or its folder `onnx`, where there is such a model."""
    places = [] if directory is None else [directory, directory / ONNX_FOLDER]
    return next(filter(is_model, places), None)


# Embedders.

_SCHEMES = ("http://", "https://")

Runtime = Literal["onnx", "torch"]
"""What runs a local model."""


def check_model(field: str, model: object, *, method: str) -> None:
    """Check that a model that a caller made has what it is asked by, where it is not a name.

    Raises:
        InvalidInput: It has no such method.
    """
    if not isinstance(model, str | None) and not callable(getattr(model, method, None)):
        problem = f"has no method `{method}`"
        raise InvalidInput(field, model, problem, "Give a model that has it, or the name of one")


def load_embedder(  # noqa: PLR0913  what a service is told, and what torch is
    name_or_path_or_url: str | Path | None = None,
    *,
    model: str | None = None,
    api_key: str | None = None,
    dimensions: int | None = None,
    query_prefix: str = "",
    passage_prefix: str = "",
    options: TorchOptions | None = None,
) -> EmbeddingModel:
    """Load an embedder.

    | given | loads |
    |---|---|
    | None, `bundled` | the model that comes with ekphory, shared by the whole process |
    | `http://…`, `https://…` | an OpenAI-compatible embedding service |
    | a directory with a `model.json`, or `onnx/model.json` | that model, with ONNX Runtime |
    | another directory, or a hub id | that model, with torch: ekphory's own, AgentRank's \
      or any of sentence-transformers |

    Args:
        name_or_path_or_url: See the table.
        model: Name of the model to ask a service for; None for `default`.
        api_key: The service's key.
        dimensions: How long a service's vectors are to be; None for the model's own length.
        query_prefix: What a service is sent before every query; other models have their own.
        passage_prefix: What it is sent before every passage.
        options: How torch loads a model, which then runs it also where there is an ONNX model.

    Raises:
        InvalidInput: The name is empty, or names a path that does not exist.
        MissingExtra: The model needs the `[torch]` extra.
        ModelError: The model cannot be loaded.
        ServiceError: The service cannot be reached or answers nonsense.
    """
    name = str(name_or_path_or_url or "").strip()
    if name.lower().startswith(_SCHEMES):
        settings = services.HttpSettings(
            model=model or "default",
            api_key=api_key,
            dimensions=dimensions,
            query_prefix=query_prefix,
            passage_prefix=passage_prefix,
        )
        return services.HttpEmbedder(name, settings=settings)
    if query_prefix or passage_prefix:
        problem = "prefixes are for an embedding service; this model has its own"
        raise InvalidInput("embedder", name, problem, "Leave the prefixes out")
    return load_local_embedder(name_or_path_or_url, options=options)


def load_local_embedder(
    name_or_path: str | Path | None = None,
    *,
    runtime: Runtime | None = None,
    options: TorchOptions | None = None,
) -> OnnxEmbedder | TorchEmbedder:
    """Load a model that runs in this process.

    Args:
        name_or_path: As in `load_embedder`, without URLs.
        runtime: What runs it; None takes ONNX Runtime where there is an ONNX model and no options,
            else torch.
        options: How torch loads it.

    Raises:
        InvalidInput: The name is empty, a URL, or names a path that does not exist; or there is no
            such runtime, or no model for it.
        MissingExtra: The model needs the `[torch]` extra.
        ModelError: The model cannot be loaded.
    """
    bundled = name_or_path in (None, "bundled")
    name = str(name_or_path).strip()
    _check_options(runtime, options)
    runtime = "torch" if options is not None else runtime
    _check_local(name, runtime, bundled=bundled)
    directory = None if bundled else find_directory(name, field="embedder")
    onnx = _onnx_directory(directory, lambda place: (place / RECORD_FILE).is_file())
    if runtime == "onnx" and not (bundled or onnx):
        raise InvalidInput("runtime", runtime, f"{name} has no such model", "Leave it out")
    if bundled or (onnx is not None and runtime != "torch"):
        # ONNX Runtime is slow to import.
        from ekphory.models.onnx_models import OnnxEmbedder, load_bundled

        return load_bundled() if onnx is None else OnnxEmbedder(onnx)
    # Optional: needs the [torch] extra.
    from ekphory.models.torch_embedder import NO_OPTIONS, TorchEmbedder

    return TorchEmbedder(str(directory or name), options=options or NO_OPTIONS)


def _check_options(runtime: str | None, options: TorchOptions | None) -> None:
    if options is not None and options.engine and runtime != "vllm":
        remedy = "Leave it out, or load a reranker with runtime='vllm'"
        problem = "is for vLLM, which does not run this model"
        raise InvalidInput("engine", dict(options.engine), problem, remedy)
    if options is not None and runtime == "onnx":
        remedy = "Leave them out, or take another runtime"
        raise InvalidInput("options", options, "are for torch, not for ONNX Runtime", remedy)


def _check_local(name: str, runtime: Runtime | None, *, bundled: bool) -> None:
    if name.lower().startswith(_SCHEMES):
        problem = "is a service, not a model that runs in this process"
        remedy = "Give the URL to Memory(path, embedder=URL), or a directory or a hub id here"
        raise InvalidInput("embedder", name, problem, remedy)
    _check_runtime(runtime, Runtime)
    if runtime == "torch" and bundled:
        remedy = "Leave it out, or save the model with save_pretrained(path) and load that path so"
        raise InvalidInput("runtime", runtime, "the bundled model comes as ONNX only", remedy)


# Rerankers.

DEFAULT_PROTOCOL = "jina"
BUNDLED_PREFIX = "ekphory-rerank-"
"""No hub is asked for a name that begins so."""

RerankRuntime = Literal["onnx", "sentence-transformers", "transformers", "vllm"]
"""What runs a local model: the last two answer yes or no with a causal language model."""


def load_reranker(  # noqa: PLR0913  what a service or a local model must be told
    spec: str | Path,
    *,
    runtime: RerankRuntime | None = None,
    model: str | None = None,
    protocol: str | None = None,
    api_key: str | None = None,
    scores: ScoreScale | None = None,
    options: TorchOptions | None = None,
) -> RerankingModel:
    """Load a reranker.

    | given | loads |
    |---|---|
    | `bundled`, `ekphory-rerank-small` | the model of six layers that comes with ekphory |
    | `ekphory-rerank-tiny` | one of three layers, by which `balanced` reads |
    | `http://…`, `https://…` | a service, by its protocol |
    | a directory with a `model.json`, or `onnx/model.json` | that model, with ONNX Runtime |
    | another directory, or a hub id | a causal language model that answers yes or no \
      (Qwen3-Reranker, MemReranker) with transformers, else a `CrossEncoder` |

    | protocol | speaks to |
    |---|---|
    | `jina` | Jina, vLLM, Infinity, llama.cpp (`scores="logit"`), most gateways |
    | `cohere` | Cohere, version 2 |
    | `tei` | text-embeddings-inference |
    | `memos` | Memos, which serves MemReranker |

    A model that runs in this process must rank known pairs rightly; a service is asked nothing yet.

    Args:
        spec: See the first table; a URL is the endpoint (`…/rerank`) or its base.
        runtime: What runs a local model; None takes what the table says.
        model: Name of the model to ask a service for; `cohere` and `memos` need one.
        protocol: What the service speaks; None for `jina`.
        api_key: The service's key.
        scores: What the service gives, `probability` or `logit`; None for probability.
        options: How torch or vLLM loads a model, which then runs it also where there is an ONNX
            model.

    Raises:
        InvalidInput: There is no such model, or none for this runtime; the protocol or the scale of
            the scores is unknown, or a model must be named.
        MissingExtra: The model needs the `[torch]` extra, or vLLM.
        ModelError: The model cannot be loaded, or ranks known pairs wrongly.
    """
    name = str(spec).strip()
    if not name.lower().startswith(_SCHEMES):
        return load_local_reranker(name, runtime=runtime, options=options)
    settings = services.RerankSettings(model=model, api_key=api_key, scores=scores or "probability")
    dialect = services.DIALECTS.get(protocol or DEFAULT_PROTOCOL)
    if dialect is None:
        remedy = f"Choose from {', '.join(sorted(services.DIALECTS))}"
        raise InvalidInput("protocol", protocol, "must be one that is known", remedy)
    return services.RemoteReranker(name, dialect=dialect, settings=settings)


def load_local_reranker(
    name: str, *, runtime: RerankRuntime | None = None, options: TorchOptions | None = None
) -> LocalReranker:
    """Load a model that runs in this process; see `load_reranker`."""
    _check_runtime(runtime, RerankRuntime)
    _check_options(runtime, options)
    bundled = SMALL_RERANKER if name == "bundled" else name
    if bundled in BUNDLED_RERANKERS:
        found = bundled_reranker(bundled)
        if found is None or runtime not in (None, "onnx") or options is not None:
            problem = "must be a reranker of this installation"
            remedy = "Give a model directory, a hub id or a URL"
            raise InvalidInput("reranker", bundled, problem, remedy)
        return found
    directory = find_directory(name, field="reranker")
    if directory is None and name.startswith(BUNDLED_PREFIX):
        known = ", ".join(BUNDLED_RERANKERS)
        raise InvalidInput("reranker", name, "no bundled reranker has this name", f"Give {known}")
    onnx = _onnx_directory(directory, is_reranker)
    if runtime == "onnx" or (runtime is None and options is None and onnx is not None):
        if onnx is None:
            raise InvalidInput("runtime", runtime, f"{name} has no such model", "Leave it out")
        # ONNX Runtime is slow to import.
        from ekphory.models.onnx_models import OnnxReranker

        return OnnxReranker(onnx)
    # Optional: needs the extras [torch] or [vllm].
    from ekphory.models.torch_reranker import load_torch_reranker

    return load_torch_reranker(str(directory or name), runtime=runtime, options=options)


# Chat models.


def load_chat(url: str, *, model: str | None, api_key: str | None = None) -> OpenAIChat:
    """Load a chat model behind an OpenAI-compatible service.

    Args:
        url: The endpoint (`…/v1/chat/completions`) or its base (`…/v1`).
        model: Name of the model to ask for.
        api_key: The service's key.

    Raises:
        InvalidInput: The URL is not one, or no model is named.
    """
    if not model:
        raise InvalidInput("model", model, "a chat service needs one", "Name a model")
    return OpenAIChat(url, settings=ChatSettings(model=model, api_key=api_key))


# A reranker of one's own whose scores were fitted to be probabilities, and the file of the fit.

_KIND = "reranker calibration"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class FittedCalibration:
    """A calibration and whose it is.

    Attributes:
        reranker: The reranker's name.
        card: The curve, over the log-odds of the scores that the reranker gives.
    """

    reranker: str
    card: CalibrationCard


def write_calibration(path: Path, fitted: FittedCalibration) -> None:
    """Write the file that `read_calibration` reads; what was there is replaced."""
    content = {"kind": _KIND, "format": _FORMAT, "reranker": fitted.reranker, **asdict(fitted.card)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_calibration(path: Path | str) -> FittedCalibration:
    """Read what `ekphory train reranker-calibration` wrote.

    Raises:
        InvalidInput: There is no such file, or it holds something else.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if content.pop("kind") != _KIND or content.pop("format") != _FORMAT:
            raise ValueError("another kind or format")
        reranker = str(content.pop("reranker"))
        slope, intercept = float(content.pop("slope")), float(content.pop("intercept"))
        if not (math.isfinite(slope) and slope > 0 and math.isfinite(intercept)):
            raise ValueError("a curve that does not rise")
        card = CalibrationCard(slope=slope, intercept=intercept, **content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        problem = f"must be a calibration of a reranker ({type(error).__name__}: {error})"
        remedy = "Make one with `ekphory train reranker-calibration`"
        raise InvalidInput("calibration", str(path), problem, remedy) from error
    return FittedCalibration(reranker, card)


class CalibratedReranker(JudgingReranker):
    """Gives σ(slope · logit(s) + intercept) where the reranker gives s. As safe for threads.

    Attributes:
        name, is_remote, bundled_name: The reranker's own.
        calibration: What its scores are worth.
    """

    is_calibrated = True

    def __init__(self, model: RerankingModel, fitted: FittedCalibration) -> None:
        """Put a calibration behind a reranker.

        Raises:
            InvalidInput: It was fitted for another one.
        """
        if fitted.reranker != model.name:
            problem = f"must have been fitted for {model.name!r}"
            remedy = "Fit one for it with `ekphory train reranker-calibration`"
            raise InvalidInput("calibration", fitted.reranker, problem, remedy)
        self._model = model
        self.name = model.name
        self.is_remote = is_remote(model)
        self.bundled_name = bundled_name(model)
        self.calibration = fitted.card

    def __repr__(self) -> str:
        return f"CalibratedReranker({self._model!r})"

    @property
    def batch_size(self) -> int:
        """The reranker's own."""
        return self._model.batch_size

    @property
    def model_id(self) -> str | None:
        """The reranker's own, where it states one."""
        return model_id(self._model)

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return probabilities, and beside them what the reranker itself shows or gives.

        Raises:
            ServiceError, ModelError: The reranker failed.
        """
        own = judge_passages(self._model, query, passages)
        given = check_scores(own.scores, count=len(passages))
        return Judgement(self.calibration.scaling.probabilities(log_odds(given)), own.raw)


# The models that the settings name.

NO_RERANKER = "none"
"""What is named where not even the bundled reranker is wanted."""


def load_configured_embedder(settings: Settings) -> EmbeddingModel | None:
    """Load the embedder that is named; None where none is, which means the bundled one.

    Raises:
        InvalidInput: It cannot be what is named.
    """
    if settings.embedder is None:
        _refuse_settings(settings, of="embedder", names=_OF_EMBEDDER)
        return None
    return load_embedder(
        settings.embedder,
        model=settings.embedder_model,
        api_key=settings.embedder_api_key,
        query_prefix=settings.embedder_query_prefix or "",
        passage_prefix=settings.embedder_passage_prefix or "",
        options=_read_options(settings.embedder_options, "EKPHORY_EMBEDDER_OPTIONS"),
    )


_OF_EMBEDDER = ("embedder_query_prefix", "embedder_passage_prefix", "embedder_options")


def _refuse_settings(settings: Settings, *, of: str, names: Sequence[str]) -> None:
    """Refuse what says how a model is loaded where none is named: the bundled one takes none."""
    for name in names:
        if (value := getattr(settings, name)) is not None:
            problem = f"is for a model that is named, and no {of} is"
            remedy = f"Name it in {PREFIX}{of.upper()}, or leave this out"
            raise InvalidInput(f"{PREFIX}{name.upper()}", value, problem, remedy)


def _read_options(text: str | None, name: str) -> TorchOptions | None:
    if text is None:
        return None
    # Slow to import.
    from ekphory.models.torch_embedder import read_options

    return read_options(text, field=name)


def load_configured_reranker(settings: Settings) -> RerankingModel | None:
    """Load the reranker that is named, else the bundled one; None for `none`, or without either.

    Raises:
        InvalidInput: It cannot be what is named, or the calibration is another one's.
        MissingExtra: It needs the `[torch]` extra.
        ModelError: It cannot be loaded, or ranks known pairs wrongly.
    """
    if settings.reranker is None:
        _refuse_settings(settings, of="reranker", names=("reranker_options",))
        return bundled_reranker()
    if settings.reranker.lower() == NO_RERANKER:
        return None
    model = load_named_reranker(settings.reranker, settings)
    if settings.reranker_calibration is None:
        return model
    return CalibratedReranker(model, read_calibration(settings.reranker_calibration))


def choose_reranker(spec: str, settings: Settings) -> RerankingModel | None:
    """Load what a program names in place of the settings' reranker, whose calibration is not its.

    Raises:
        InvalidInput, MissingExtra, ModelError: As `configured_reranker`.
    """
    card = settings.reranker_calibration if spec == settings.reranker else None
    return load_configured_reranker(replace(settings, reranker=spec, reranker_calibration=card))


def load_named_reranker(spec: str, settings: Settings) -> RerankingModel:
    """Load any reranker; a service is asked as the settings say.

    Raises:
        InvalidInput, MissingExtra, ModelError: As `load_reranker`.
    """
    scale = settings.reranker_scores
    if scale is not None and scale not in get_args(ScoreScale):
        known = " or ".join(get_args(ScoreScale))
        raise InvalidInput("EKPHORY_RERANKER_SCORES", scale, "no scale of scores", f"Give {known}")
    return load_reranker(
        spec,
        model=settings.reranker_model,
        protocol=settings.reranker_protocol,
        api_key=settings.reranker_api_key,
        scores=cast("ScoreScale | None", scale),
        options=_read_options(settings.reranker_options, "EKPHORY_RERANKER_OPTIONS"),
    )


def load_configured_chat(settings: Settings) -> OpenAIChat | None:
    """Load the language model that is named; None where none is.

    Raises:
        InvalidInput: It cannot be what is named.
    """
    if settings.chat_url is None:
        return None
    return load_chat(settings.chat_url, model=settings.chat_model, api_key=settings.chat_api_key)
