"""What the demo does with its conversation; how it looks is `demo_command`'s part."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ekphory.agent.settings import AgentOptions, AgentSettings
from ekphory.agent_trace.retrieval_trace import StageResult
from ekphory.demo import DEMO_NOW, DemoQuestion, demo_questions, demo_records
from ekphory.results import SearchResult
from ekphory.types import Hit, MemoryRecord

if TYPE_CHECKING:
    from ekphory.memory import Memory

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Scene:
    """One search that the demo shows.

    Attributes:
        shows: What it demonstrates.
        query: What is asked.
        filter: The condition; None asks without one.
        pool: The only pool searched; None searches all.
    """

    shows: str
    query: str
    filter: str | None = None
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the demo found for one of its questions.

    Attributes:
        question: The question.
        rank: Rank, from 1, of the first expected memory among those shown; None for a miss.
        hit: That memory, or else the first hit.
        milliseconds: How long the search took.
        hops: What the agent found on the way, where one lookup was not enough.
    """

    question: DemoQuestion
    rank: int | None
    hit: Hit
    milliseconds: float
    hops: tuple[StageResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """Everything that the demo did.

    Attributes:
        added, seconds: How many memories were added, and how long that took.
        scenes: The searches with their results.
        versions: The updated memory with its history, newest first.
        answers: What was found for each question.
    """

    added: int
    seconds: float
    scenes: tuple[tuple[Scene, SearchResult], ...]
    versions: tuple[MemoryRecord, ...]
    answers: tuple[Answer, ...]

    @property
    def answered(self) -> int:
        """How many questions have an expected memory among the first hits."""
        return sum(answer.rank is not None for answer in self.answers)


SCENES = (
    Scene("by meaning, with no word in common", "Which food could harm her?"),
    Scene(
        "by time",
        "What happened to Biscuit?",
        "at >= date('2026-06-01') AND at < date('2026-07-01')",
    ),
    Scene("by type", "How do I undo a bad release?", "type = 'procedural'"),
    Scene("by importance", "What must I never cook for her?", "importance >= 0.8"),
    Scene("in one pool", "What should we do better next time?", None, "agent_mistakes"),
)
_RENEWED = "fact-passport"
_RENEWED_TEXT = "Mara's passport was replaced; the new one is valid until 1 October 2036."


def show(memory: Memory) -> Showing:
    """Add the demo's conversation, search it, ask its questions and update a memory."""
    started = time.perf_counter()
    added = memory.add_many(demo_records()).added
    seconds = time.perf_counter() - started
    scenes = tuple((scene, _search(memory, scene)) for scene in SCENES)
    answers = tuple(_ask(memory, question) for question in demo_questions())
    memory.update(_RENEWED, text=_RENEWED_TEXT, expires_at="2036-10-01T00:00:00Z")
    versions = tuple(memory.history(_RENEWED))
    return Showing(added=added, seconds=seconds, scenes=scenes, versions=versions, answers=answers)


def _search(memory: Memory, scene: Scene) -> SearchResult:
    pools = None if scene.pool is None else [scene.pool]
    return memory.search(scene.query, k=_SHOWN, now=DEMO_NOW, filter=scene.filter, pools=pools)


def _ask(memory: Memory, question: DemoQuestion) -> Answer:
    started = time.perf_counter()
    result = memory.search(
        question.text,
        k=_SHOWN,
        now=DEMO_NOW,
        agent_mode=bool(question.chain),
        agent_options=AgentOptions(settings=AgentSettings(agent_session_provider="local")),
    )
    milliseconds = (time.perf_counter() - started) * 1000
    hits = result.hits
    ranked = ((rank, hit) for rank, hit in enumerate(hits, start=1) if hit.id in question.expected)
    rank, hit = next(ranked, (None, hits[0]))
    hops = () if result.retrieval_trace is None else result.retrieval_trace.hops
    return Answer(question, rank, hit, milliseconds, hops)
