"""Finds the reranker that a directory, a hub id or a URL means."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from ekphory.errors import InvalidInput
from ekphory.models.bundled_reranker import (
    BUNDLED_RERANKERS,
    SMALL_RERANKER,
    bundled_reranker,
)
from ekphory.models.cohere_reranker import COHERE
from ekphory.models.jina_reranker import JINA
from ekphory.models.memos_reranker import MEMOS
from ekphory.models.model_directory import ONNX_FOLDER, existing_directory
from ekphory.models.remote_reranker import RemoteReranker, RerankSettings
from ekphory.models.rerank_scores import ScoreScale
from ekphory.models.reranker import LocalReranker, RerankingModel
from ekphory.models.reranker_record import is_reranker
from ekphory.models.tei_reranker import TEI

DIALECTS = {dialect.name: dialect for dialect in (COHERE, JINA, TEI, MEMOS)}
DEFAULT_PROTOCOL = JINA.name
BUNDLED_PREFIX = "ekphory-rerank-"
"""No hub is asked for a name that begins so."""

RerankRuntime = Literal["onnx", "sentence-transformers", "transformers", "vllm"]
"""What runs a local model: the last two answer yes or no with a causal language model."""


def load_reranker(
    spec: str | Path,
    *,
    runtime: RerankRuntime | None = None,
    model: str | None = None,
    protocol: str | None = None,
    api_key: str | None = None,
    scores: ScoreScale | None = None,
) -> RerankingModel:
    """Load a reranker.

    | given | loads |
    |---|---|
    | `bundled`, `ekphory-rerank-small` | the model of six layers that comes with ekphory |
    | `ekphory-rerank-tiny` | its model of three layers, which `balanced` may use |
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

    Raises:
        InvalidInput: There is no such model, or none for this runtime; the protocol or the scale of
            the scores is unknown, or a model must be named.
        MissingExtra: The model needs the `[torch]` extra, or vLLM.
        ModelError: The model cannot be loaded, or ranks known pairs wrongly.
    """
    name = str(spec).strip()
    if not name.lower().startswith(("http://", "https://")):
        return load_local_reranker(name, runtime=runtime)
    settings = RerankSettings(model=model, api_key=api_key, scores=scores or "probability")
    dialect = DIALECTS.get(protocol or DEFAULT_PROTOCOL)
    if dialect is None:
        raise InvalidInput(
            "protocol", protocol, "unknown", f"Choose from {', '.join(sorted(DIALECTS))}"
        )
    return RemoteReranker(name, dialect=dialect, settings=settings)


def load_local_reranker(name: str, *, runtime: RerankRuntime | None = None) -> LocalReranker:
    """Load a model that runs in this process; see `load_reranker`."""
    if runtime is not None and runtime not in get_args(RerankRuntime):
        known = ", ".join(get_args(RerankRuntime))
        raise InvalidInput("runtime", runtime, "unknown", f"Choose from {known}, or leave it out")
    bundled = SMALL_RERANKER if name == "bundled" else name
    if bundled in BUNDLED_RERANKERS:
        return _bundled(bundled, runtime)
    directory = existing_directory(name, field="reranker")
    if directory is None and name.startswith(BUNDLED_PREFIX):
        known = ", ".join(BUNDLED_RERANKERS)
        raise InvalidInput("reranker", name, "no bundled reranker has this name", f"Give {known}")
    onnx = None if directory is None else _onnx_directory(directory)
    if runtime == "onnx" or (runtime is None and onnx is not None):
        if onnx is None:
            raise InvalidInput("runtime", runtime, f"{name} has no such model", "Leave it out")
        from ekphory.models.onnx_reranker import OnnxReranker

        return OnnxReranker(onnx)
    place = str(directory or name)
    if runtime == "vllm":
        from ekphory.models.vllm_reranker import VllmReranker

        return VllmReranker(place)
    from ekphory.models.torch_rerankers import load_torch_reranker

    return load_torch_reranker(place, runtime=runtime)


def _bundled(name: str, runtime: RerankRuntime | None) -> LocalReranker:
    found = bundled_reranker(name)
    if found is None or runtime not in (None, "onnx"):
        raise InvalidInput(
            "reranker",
            name,
            "this installation has no such reranker",
            "Give a model directory, a hub id or a URL",
        )
    return found


def _onnx_directory(directory: Path) -> Path | None:
    places = (directory, directory / ONNX_FOLDER)
    return next((place for place in places if is_reranker(place)), None)
