"""AgentRank's names: its embedder and its reranker, asked as the package `agentrank` asks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from ekphory.errors import InvalidInput
from ekphory.models.agent_embedder import AgeInDays, Embedder, list_texts
from ekphory.models.agent_reranker import Reranker
from ekphory.models.embedder import FloatMatrix
from ekphory.models.loading import load_local_embedder, load_reranker
from ekphory.models.onnx_models import OnnxEmbedder
from ekphory.models.reranker import RerankingModel
from ekphory.models.torch_embedder import AGENTRANK_MAX_TOKENS, SavedFormat, TorchEmbedder
from ekphory.types import MemoryType, check_count

_SPECIAL_TOKENS = 2
"""Of what AgentRank's encoders read: at the beginning and at the end."""


class _OfTheCard(TypedDict, total=False):
    """Ages in days and types as AgentRank's model card calls them; one value counts for all."""

    days_ago: AgeInDays | Sequence[AgeInDays]
    memory_type: MemoryType | Sequence[MemoryType | None] | None


class AgentRankEmbedder(Embedder):
    """An `Embedder` that is asked as AgentRank's is, and saved so that `agentrank` loads it.

        model = AgentRankEmbedder.from_pretrained("bundled")
        model.encode(["User prefers Python"], temporal_info=[7], memory_types=["semantic"])
        model.save_pretrained("folder")

    `AgentRankEmbedder.from_pretrained("folder")` of `agentrank` 0.1.3 gives the same vectors, but
    for the 8 bits in which a model that is loaded from ONNX computes.
    """

    def __init__(self, model_name: str | Path | OnnxEmbedder | TorchEmbedder = "bundled") -> None:
        """Load a model by what `from_pretrained` takes, or wrap one that is loaded.

        The package makes ages and types of its own for a model that has none; here it has none.

        Raises:
            InvalidInput, MissingExtra, ModelError: As `from_pretrained`.
        """
        if isinstance(model_name, str | Path):
            model_name = load_local_embedder(model_name)
        if not isinstance(model_name, OnnxEmbedder | TorchEmbedder):
            raise _no_model(model_name)
        super().__init__(model_name)

    def encode(
        self,
        texts: str | Sequence[str],
        temporal_info: Sequence[AgeInDays] | None = None,
        memory_types: Sequence[MemoryType | None] | None = None,
        batch_size: int = 32,
        show_progress: bool = True,  # noqa: FBT001  the package's own
        max_length: int = AGENTRANK_MAX_TOKENS,
        **card: Unpack[_OfTheCard],
    ) -> FloatMatrix:
        """Embed memories; returns shape (len(texts), dimension), rows of length 1.

        Args:
            texts: The memories; a single text counts as a list of one.
            temporal_info: Age in days of each.
            memory_types: Type of each.
            batch_size: Without effect: batches are made by length.
            show_progress: Without effect: nothing is printed.
            max_length: Most tokens that are read of each, within the model's window.
            card: `days_ago` and `memory_type`, as the model card calls ages and types.

        Raises:
            InvalidInput, ModelError: As `Embedder.encode`.
        """
        del batch_size, show_progress
        check_count("max_length", max_length)
        given = {"temporal_info": temporal_info, "memory_types": memory_types}
        renamed: dict[str, str] = {}
        for of_card, name in (("days_ago", "temporal_info"), ("memory_type", "memory_types")):
            if given[name] is None:
                continue
            if of_card in card:
                problem = f"is given beside {of_card}, which says the same"
                raise InvalidInput(name, given[name], problem, "Give one of them")
            card[of_card], renamed[of_card] = given[name], name  # type: ignore[literal-required]
        if max_length < AGENTRANK_MAX_TOKENS:
            texts = [self._cut(text, max_length - _SPECIAL_TOKENS) for text in list_texts(texts)]
        try:
            return super().encode(texts, **card)
        except InvalidInput as error:
            name = renamed.get(error.field, error.field)
            error.args = (str(error).replace(error.field, name, 1),)
            error.field = name
            raise

    def _cut(self, text: str, tokens: int) -> str:
        ends = [end for _, end in self._model.offsets(text)[: max(0, tokens)]]
        return text[: max(ends, default=0)]

    def save_pretrained(
        self,
        path: str | Path,
        *,
        formats: Sequence[SavedFormat] | None = ("agentrank",),
        results: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        """Write a directory that `agentrank` loads too; otherwise as `Embedder.save_pretrained`."""
        super().save_pretrained(path, formats=formats, results=results)


class AgentRankReranker(Reranker):
    """A `Reranker` with the function of AgentRank's second stage.

    reranker = AgentRankReranker.from_pretrained("vrushket/agentrank-reranker")
    reranker.rerank("What's my Python preference?", candidates, top_k=10)
    """

    def __init__(self, model_name: str | Path | RerankingModel = "bundled") -> None:
        """Load a model by what `from_pretrained` takes, or wrap one that is loaded.

        Raises:
            InvalidInput, MissingExtra, ModelError: As `from_pretrained`.
        """
        if isinstance(model_name, str | Path):
            model_name = load_reranker(model_name)
        if not isinstance(model_name, RerankingModel):
            raise _no_model(model_name)
        super().__init__(model_name)

    def rerank(
        self, query: str, candidates: Sequence[str], top_k: int = 10
    ) -> list[tuple[float, str]]:
        """Return the best candidates with the probability that each answers, best first.

        Raises:
            InvalidInput, ModelError, ServiceError: As `Reranker.rank`.
        """
        ranked = self.rank(query, candidates, top_n=top_k)
        return [(each.score, candidates[each.index]) for each in ranked]


def _no_model(given: object) -> InvalidInput:
    remedy = "Give 'bundled', a directory, a hub id, or a model that is loaded"
    return InvalidInput("model_name", given, "must name a model or be one", remedy)
