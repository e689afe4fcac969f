"""The retrieval agent behind the evaluation's door, over the store of plain search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from ekphory.agent.settings import AgentOptions, AgentSettings
from ekphory.agent_trace.retrieval_trace import RetrievalTrace
from ekphory.evaluation.datasets import EvaluationQuery, Passage
from ekphory.evaluation.product import EkphorySystem, newest_moment
from ekphory.evaluation.retriever import Retriever, Scored, Setting


class AgentSystem:
    """Asks every question with `agent_mode`, and counts what the sessions did."""

    def __init__(self, system: EkphorySystem, settings: AgentSettings) -> None:
        """Say what is measured.

        Args:
            system: Whose store is searched.
            settings: How sessions are held.
        """
        self._system = system
        self._options = AgentOptions(settings=settings)
        self._provider = settings.provider
        self._traces: list[RetrievalTrace] = []

    @property
    def name(self) -> str:
        """`agent:` and the provider."""
        return f"agent:{self._provider}"

    @property
    def configuration(self) -> Mapping[str, Setting]:
        """That of the store, the provider, and what the sessions so far did."""
        calls = [trace.memory_search_called for trace in self._traces]
        fallen = [trace for trace in self._traces if trace.fallback_trigger_reason is not None]
        return {
            **self._system.configuration,
            "agent": self._provider,
            "searches_a_question": round(fmean(calls), 3) if calls else None,
            "questions_of_one_search": sum(count == 1 for count in calls),
            "fallbacks": len(fallen),
        }

    def retriever(self, pool: str, passages: Sequence[Passage], /) -> Retriever:
        """Write the pool, if that was not done yet, and give its retriever."""
        memory = self._system.memory(pool, passages)
        newest = newest_moment(passages)

        def search(query: EvaluationQuery, k: int, /) -> list[Scored]:
            result = memory.search(
                query.text,
                k=k,
                now=query.at or newest,
                preset=self._system.preset,
                time=self._system.time,
                agent_mode=True,
                agent_options=self._options,
            )
            if result.retrieval_trace is not None:
                self._traces.append(result.retrieval_trace)
            return [(hit.id, hit.score) for hit in result.hits]

        return search
