"""Searching: a question checked, run through a pipeline over a scope, and what comes back."""

from __future__ import annotations

import html
import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta, tzinfo
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn, get_args, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekphory.agent_trace import RetrievalTrace
from ekphory.engine import Engine
from ekphory.errors import InvalidInput, MissingExtra, shorten
from ekphory.filters.tree import EVERYTHING, And, Comparison, Contains, Field, Filter, In, Or
from ekphory.history import get
from ekphory.prompting import block
from ekphory.retrieval.dense import IndexedVectors
from ekphory.retrieval.pipeline import (
    NO_OPTIONAL_MODELS,
    Candidates,
    OptionalModels,
    Pipeline,
    RecordReader,
    RememberedRecords,
    SearchRequest,
    SearchResources,
    SearchState,
    read_candidates,
)
from ekphory.retrieval.presets import preset
from ekphory.retrieval.snapshot import ScopeSnapshot
from ekphory.scope import Scope
from ekphory.store.ledger import RevisionLink, RevisionLinks
from ekphory.store.protocol import CURRENT, IntArray, VectorsReplaced
from ekphory.types import (
    EPOCH,
    STANDARD_POOLS,
    Hit,
    MemoryRecord,
    ResultOrder,
    StageTrace,
    SupersededUse,
    TimeUse,
    Trace,
    are_strings,
    check_count,
    find_zone,
    now_utc,
    to_microseconds,
    to_plain_data,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What one search gave.

    Attributes:
        hits: Best first.
        trace: What every stage did.
        abstained: True when memories were found but none reached `min_score`.
        retrieval_trace: What the retrieval agent did; None without `agent_mode`.
        order: What the hits are ordered by. By `score`, scores never rise, and `min_score`
            cuts the end of the list. Else the order is that of fused `ranks`, of `time`, of
            relevance weighed against `diversity`, with `pins` first, of the `newest`, along a
            `chain` of memories, or as the `stages` of one's own pipeline left it.
    """

    hits: tuple[Hit, ...]
    trace: Trace
    abstained: bool = False
    retrieval_trace: RetrievalTrace | None = None
    order: ResultOrder = "score"

    @property
    def chain_probability(self) -> float | None:
        """Probability in [0, 1] that the agent's chain holds; None where none was followed."""
        traced = self.retrieval_trace
        return None if traced is None else traced.chain_probability

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, place: int) -> Hit: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[place]

    def __repr__(self) -> str:
        if not self.hits:
            reason = ", none likely enough" if self.abstained else ""
            return f"<SearchResult: {self._count_hits()}{reason}>"
        best = self.hits[0]
        first = f"{best.score:.2f} {shorten(best.text)}"
        return f"<SearchResult: {self._count_hits()}, the first {first}>"

    def _repr_html_(self) -> str:
        """Return the hits as a table, for notebooks."""
        rows = "".join(
            f"<tr><td>{place}<td>{hit.score:.2f}<td style='text-align:left'>{html.escape(hit.text)}"
            f"<td>{hit.memory.at:%Y-%m-%d}<td>{html.escape(hit.memory.pool)}</tr>"
            for place, hit in enumerate(self.hits, start=1)
        )
        head = "<tr><th><th>score<th style='text-align:left'>text<th>at<th>pool</tr>"
        return f"<table><caption>{self._count_hits()}</caption>{head}{rows}</table>"

    def to_dict(self) -> dict[str, Any]:
        """Return hits and how they are ordered as `json.dumps` takes it; `trace` has its own."""
        return {
            "hits": [to_plain_data(hit) for hit in self.hits],
            "abstained": self.abstained,
            "order": self.order,
        }

    def to_arrow(self) -> pa.Table:
        """Return a table of a row a hit, best first: id, text, score, and the memory's fields.

        `superseded_by` and `since` are those of the hit. `metadata` is JSON. Raw scores are columns
        named `scores.cosine` and so on, null where a hit has none.
        """
        scores = sorted({f"scores.{name}" for hit in self.hits for name in hit.scores})
        columns = {"score": pa.float64()} | dict.fromkeys(scores, pa.float64()) | _RECORD_COLUMNS
        columns["since"] = pa.timestamp("us", tz="UTC")
        first = ["id", "text"]
        schema = pa.schema([(name, columns[name]) for name in dict.fromkeys([*first, *columns])])
        return pa.Table.from_pylist(list(map(_as_row, self.hits)), schema=schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table of `to_arrow` as a data frame.

        Raises:
            MissingExtra: pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise MissingExtra("pandas", "SearchResult.to_pandas()")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_prompt(
        self,
        max_tokens: int = 2000,
        *,
        now: str | datetime | None = None,
        recent_messages: Sequence[str] = (),
        injections: block.Injections = "drop",
        count_tokens: block.CountTokens = block.estimate_tokens,
    ) -> str:
        """Return the hits as text for a model's prompt: the `text` of `prompt_block`."""
        settings = block.BlockSettings(max_tokens, now, recent_messages, injections, count_tokens)
        return self._block(settings).text

    @property
    def was_asked(self) -> bool:
        """Whether a question was put; where hits are listed, their scores say nothing."""
        return self.trace.preset not in _UNASKED

    def prompt_block(
        self,
        max_tokens: int = 2000,
        *,
        now: str | datetime | None = None,
        recent_messages: Sequence[str] = (),
        injections: block.Injections = "drop",
        count_tokens: block.CountTokens = block.estimate_tokens,
    ) -> block.PromptBlock:
        """Return the hits as a block for a model's prompt, and say what was left out of it.

        The block says that its content is data and no instruction; all of it is escaped. Each
        memory carries its place in `hits` from 1, source, type, date, age, producer and, where
        something was asked, its score: one that rounds to 0.00 is left out beside others, unless a
        hop of the agent led to it. Without hits the block says so in words: it is not empty, as if
        no search had run. It is empty only when `max_tokens` cannot hold its frame.

        Args:
            max_tokens: Limit for the whole block; a memory that does not fit is passed over, and
                where none fits the first is cut at the end of a sentence or a word.
            now: The moment that ages are told from; None for the current one.
            recent_messages: Texts that the prompt holds besides. A memory of which more than .4
                of the words stand in one of them is left out. Give what the model reads anyway;
                a question shares words with its answers, and would push out 1 to 3 % of them.
            injections: `drop` leaves out memories that try to steer a model, `keep` shows them.
            count_tokens: Counts the tokens of a text; by default an estimate from above.

        Raises:
            InvalidInput: An argument cannot be used.
        """
        settings = block.BlockSettings(max_tokens, now, recent_messages, injections, count_tokens)
        return self._block(settings)

    def answer_context(
        self,
        max_tokens: int = 2000,
        *,
        now: str | datetime | None = None,
        recent_messages: Sequence[str] = (),
        injections: block.Injections = "drop",
        count_tokens: block.CountTokens = block.estimate_tokens,
    ) -> str:
        """Return the evidence chain of the retrieval agent and the hits as text for a prompt.

        It is the block of `to_prompt`, which first tells, a line each, what every hop looked for,
        what it found, how sure that is, and which memories state it. Without `agent_mode`, and
        where one lookup was enough, it is the same as `to_prompt`.
        """
        settings = block.BlockSettings(max_tokens, now, recent_messages, injections, count_tokens)
        traced = self.retrieval_trace
        notes = () if traced is None else block.format_hop_notes(traced, self.hits)
        return self._block(settings, notes=notes).text

    def _block(
        self, settings: block.BlockSettings, *, notes: Sequence[str] = ()
    ) -> block.PromptBlock:
        if_empty = block.NOTHING_LIKELY if self.abstained else block.NOTHING_FOUND
        asked = self.was_asked
        return block.prompt_block(self.hits, settings, if_empty=if_empty, notes=notes, asked=asked)

    def _count_hits(self) -> str:
        return "1 hit" if len(self) == 1 else f"{len(self) or 'no'} hits"


_COLUMN_TYPES = {
    **dict.fromkeys(("at", "created_at", "expires_at"), pa.timestamp("us", tz="UTC")),
    "importance": pa.float64(),
    "predicted": pa.list_(pa.string()),
    "sequence": pa.int64(),
}
_RECORD_COLUMNS = {
    entry.name: _COLUMN_TYPES.get(entry.name, pa.string()) for entry in fields(MemoryRecord)
}


def _as_row(hit: Hit) -> dict[str, object]:
    record = {name: getattr(hit.memory, name) for name in _RECORD_COLUMNS}
    record |= {
        "predicted": sorted(hit.memory.predicted),
        "metadata": json.dumps(dict(hit.memory.metadata)),
    }
    scores = {f"scores.{name}": score for name, score in hit.scores.items()}
    own = {name: getattr(hit, name) for name in ("id", "text", "score", "superseded_by", "since")}
    return record | scores | own


# Searching.

MOST_HITS = 1000
NEWEST = "newest"
"""Name of the trace of an empty query, which no preset ranks."""
LISTED = "listed"
"""Name of the trace of memories that no question found."""
_UNASKED = (NEWEST, LISTED)
_READS_CONTEXT = frozenset({"reranked", "news"})
"""What stages give that read the dialogue before the question."""


@dataclass(frozen=True, slots=True)
class Question:
    """The arguments of `Memory.search`, read but not yet checked against the store.

    `times_of` is the text whose words name the time; None for the query.
    """

    query: str
    k: int
    now: datetime
    pools: Sequence[str] | None
    filter: Filter
    min_score: float | None
    preset: str | Pipeline | None
    context: Sequence[str] = ()
    time: TimeUse = "boost"
    timezone: str | tzinfo = "UTC"
    superseded: SupersededUse = "recede"
    times_of: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.query, str):
            self._refuse("query", "must be a string", "Give a question or some words")
        check_count("k", self.k, most=MOST_HITS)
        if self.min_score is not None and not _is_probability(self.min_score):
            self._refuse("min_score", "must be between 0 and 1", "Give a number from 0 to 1")
        if self.pools is not None and not (self.pools and are_strings(self.pools)):
            self._refuse("pools", "must be a list of pools", "Give ['agent_memory']")
        if not are_strings(self.context):
            self._refuse("context", "must be a list of strings", "Give ['a message']")
        if self.time not in get_args(TimeUse):
            uses = " or ".join(repr(use) for use in get_args(TimeUse))
            self._refuse("time", "must be a use of time", f"Give {uses}")
        if self.superseded not in get_args(SupersededUse):
            uses = " or ".join(repr(use) for use in get_args(SupersededUse))
            self._refuse("superseded", "must say what becomes of it", f"Give {uses}")
        find_zone(self.timezone)

    def _refuse(self, name: str, problem: str, remedy: str) -> NoReturn:
        raise InvalidInput(name, getattr(self, name), problem, remedy)


def search(
    engine: Engine, scope: Scope, question: Question, *, models: OptionalModels = NO_OPTIONAL_MODELS
) -> SearchResult:
    """Answer a question from the scope's memories."""
    while True:
        # Else the vectors were replaced while it ran.
        with suppress(VectorsReplaced):
            return _search(engine, scope, question, models)


def related(
    engine: Engine,
    scope: Scope,
    memory_id: str,
    *,
    k: int,
    pipeline: Pipeline,
    models: OptionalModels,
) -> list[MemoryRecord]:
    """Return the memories that a search for the text of one finds, without itself.

    A time in the text asks for nothing.
    """
    check_count("k", k)
    asked = Question(
        query=get(engine, scope, memory_id).text,
        k=k + 1,
        now=now_utc(),
        pools=None,
        filter=EVERYTHING,
        min_score=None,
        preset=pipeline,
        time="ignore",
    )
    found = search(engine, scope, asked, models=models)
    return [hit.memory for hit in found if hit.id != memory_id][:k]


def _search(
    engine: Engine, scope: Scope, question: Question, models: OptionalModels
) -> SearchResult:
    pipeline = preset(question.preset)
    _check_time(question, pipeline)
    started = time.perf_counter()
    snapshot = engine.snapshots.of(scope.predicate())
    engine.warn_of_mismatch()
    visible = _visible(engine, scope, snapshot, question)
    request = SearchRequest(
        query=question.query,
        k=question.k,
        now=to_microseconds(question.now),
        min_score=question.min_score,
        visible=visible,
        context=tuple(question.context),
        pinned=engine.pinned.rows(snapshot, visible),
        time=question.time,
        timezone=question.timezone,
        superseded=question.superseded,
        times_of=question.times_of,
    )
    records = RememberedRecords(snapshot.records.fetch)
    resources = _resources(engine, scope, question, models, records)
    links = engine.links.of(snapshot.columns).in_force(request.now)
    state = SearchState(request, snapshot, resources, question.query, links=links)
    detail = {}
    if question.context and not any(_READS_CONTEXT & stage.gives for stage in pipeline.stages):
        detail["context"] = f"no stage of {pipeline.name!r} reads it"
    milliseconds = (time.perf_counter() - started) * 1000
    counts = len(snapshot), int(np.count_nonzero(visible))
    opened = StageTrace(0, "open scope", "ran", None, *counts, milliseconds, detail)
    if question.query.strip():
        state, trace = pipeline.run(state)
        trace = Trace(trace.preset, (opened, *trace.stages))
    else:
        listed = _newest(snapshot, request, links)
        state = replace(state, candidates=listed, order="newest")
        trace = Trace(NEWEST, (opened,))
    if engine.store.index_is_due():
        engine.writer.build_index_soon()
    hits = _hits(state)
    _check_vectors(engine, snapshot)
    abstained = question.min_score is not None and not hits and bool(visible.any())
    return SearchResult(hits, trace, abstained, order=_order(state, pipeline))


def _check_time(question: Question, pipeline: Pipeline) -> None:
    if question.time == "filter" and not any("timed" in stage.gives for stage in pipeline.stages):
        problem = f"the preset {pipeline.name!r} reads no time"
        raise InvalidInput("time", "filter", problem, "Take another preset")


def _check_vectors(engine: Engine, snapshot: ScopeSnapshot) -> None:
    """Check that no other vectors came while a search ran, which may have found by both."""
    if isinstance(snapshot.dense, IndexedVectors):
        # They are read while they are searched.
        engine.store.version()
    if engine.store.identity != snapshot.identity:
        raise VectorsReplaced(f"{engine.uri}: its vectors were replaced. Repeat the search.")


def _order(state: SearchState, pipeline: Pipeline) -> ResultOrder:
    """Return what orders the hits; a pipeline that calibrates nothing leaves it to its stages."""
    if state.order == "score" and not any("calibrated" in stage.gives for stage in pipeline.stages):
        return "stages"
    return state.order


def _visible(
    engine: Engine, scope: Scope, snapshot: ScopeSnapshot, question: Question
) -> NDArray[np.bool_]:
    visible = snapshot.alive(to_microseconds(question.now))
    if question.pools is not None:
        _check_pools(question.pools, snapshot)
        visible &= np.isin(snapshot.columns.pool, list(question.pools))
    # The store need not be asked which of no memories fulfil a condition.
    if question.filter != EVERYTHING and visible.any():
        where = And((scope.predicate(), CURRENT, question.filter))
        visible &= snapshot.fulfil(question.filter, lambda: engine.store.keys(where))
    return visible


def _resources(
    engine: Engine, scope: Scope, question: Question, models: OptionalModels, records: RecordReader
) -> SearchResources:
    in_view: tuple[Filter, ...] = (scope.predicate(), CURRENT, question.filter)
    if question.pools is not None:
        in_view += (In(Field("pool"), tuple(question.pools)),)

    def children(parents: Sequence[str]) -> list[MemoryRecord]:
        where = And((*in_view, In(Field("parent_id"), tuple(parents))))
        found = engine.store.select(where, order="written")
        now = question.now
        return [each for each in found if each.expires_at is None or each.expires_at > now]

    def openings(links: Sequence[str]) -> IntArray:
        path = Field("path")
        called = Or(tuple(Contains(path, f"{link}.md", any_case=True) for link in links))
        first = Comparison(Field("sequence"), "eq", 0)
        return engine.store.keys(And((scope.predicate(), CURRENT, first, called)))

    return SearchResources(
        embedder=engine.embedder,
        records=records,
        children=children,
        openings=openings,
        reranker=models.reranker,
        chat=models.chat,
        known_scores=models.known_scores,
    )


def _check_pools(pools: Sequence[str], snapshot: ScopeSnapshot) -> None:
    known = {*STANDARD_POOLS, *map(str, snapshot.pool_names)}
    for pool in pools:
        if pool not in known:
            remedy = f"Choose from {', '.join(sorted(known))}"
            raise InvalidInput("pools", pool, "no such pool in this scope", remedy)


def _newest(snapshot: ScopeSnapshot, request: SearchRequest, links: RevisionLinks) -> Candidates:
    rows = np.flatnonzero(request.visible)
    if request.superseded == "hide":
        rows = np.array([row for row in rows.tolist() if not links.successor(row)], np.int64)
    if len(rows) > request.k:
        # Sorting is left with those that can be among the newest at all.
        moments = snapshot.columns.at[rows]
        oldest = np.partition(moments, -request.k)[-request.k]
        rows = rows[moments >= oldest]
    order = np.lexsort((-rows, -snapshot.columns.at[rows]))[: request.k]
    chosen = rows[order]
    nothing = np.zeros(len(chosen), np.float32)
    listed = Candidates(chosen, nothing, {"probability": nothing})
    return listed if request.min_score is None else listed.take(nothing >= request.min_score)


def _hits(state: SearchState) -> tuple[Hit, ...]:
    candidates, records = read_candidates(state)
    hits: list[Hit] = []
    for place, record in enumerate(records):
        named = ((name, float(values[place])) for name, values in candidates.scores.items())
        # A stage that scored only some candidates left the others without a number.
        scores = {name: score for name, score in named if not math.isnan(score)}
        row = int(candidates.rows[place])
        text = state.texts.get(row, record.text)
        hit = Hit(record.id, text, scores["probability"], scores, record)
        hits.append(_mark_superseded(hit, state.links.successor(row), state))
    return tuple(hits)


def _mark_superseded(hit: Hit, link: RevisionLink | None, state: SearchState) -> Hit:
    if link is None or not state.request.visible[link.newer]:
        return hit
    since = EPOCH + timedelta(microseconds=link.since)
    return replace(hit, superseded_by=link.newer_id, since=since)


def _is_probability(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
