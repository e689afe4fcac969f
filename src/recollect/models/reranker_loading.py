"""Finds the reranker that a URL and a protocol's name mean."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import InvalidInput
from recollect.models.cohere_reranker import COHERE
from recollect.models.jina_reranker import JINA
from recollect.models.memos_reranker import MEMOS
from recollect.models.remote_reranker import RemoteReranker, RerankSettings
from recollect.models.rerank_scores import ScoreScale
from recollect.models.reranker import Reranker
from recollect.models.tei_reranker import TEI

DIALECTS = {dialect.name: dialect for dialect in (COHERE, JINA, TEI, MEMOS)}
DEFAULT_PROTOCOL = JINA.name


def load_reranker(
    spec: str | Path,
    *,
    model: str | None = None,
    protocol: str | None = None,
    api_key: str | None = None,
    scores: ScoreScale = "probability",
) -> Reranker:
    """Load a reranker.

    | protocol | speaks to |
    |---|---|
    | `jina` | Jina, vLLM, Infinity, llama.cpp (`scores="logit"`), most gateways |
    | `cohere` | Cohere, version 2 |
    | `tei` | text-embeddings-inference |
    | `memos` | Memos, which serves MemReranker |

    Args:
        spec: URL of the service: the endpoint (`…/rerank`) or its base.
        model: Name of the model to ask for; `cohere` and `memos` need one.
        protocol: What the service speaks; None for `jina`.
        api_key: The service's key.
        scores: What the service gives, probabilities or logits.

    Raises:
        InvalidInput: What is given is no URL, the protocol is unknown, or a model is needed.
    """
    settings = RerankSettings(model=model, api_key=api_key, scores=scores)
    dialect = DIALECTS.get(protocol or DEFAULT_PROTOCOL)
    if dialect is None:
        raise InvalidInput(
            "protocol", protocol, "unknown", f"Choose from {', '.join(sorted(DIALECTS))}"
        )
    return RemoteReranker(str(spec), dialect=dialect, settings=settings)
