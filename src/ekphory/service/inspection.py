"""Looking into a project: its outline and timeline, and searches told in full."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, JsonValue

from ekphory.agent.provider import AgentOptions
from ekphory.agent_trace import HopResolved, ToolReturned
from ekphory.capture.services import ENTITIES, split_entities
from ekphory.catalog.database import NotThere
from ekphory.errors import InvalidInput
from ekphory.filters.tree import EVERYTHING, Contains, Field, Filter, In, MetadataField
from ekphory.history import in_view
from ekphory.memory import Memory, Records
from ekphory.prompting.block import format_age
from ekphory.recorded_searches import RecordedIn, RecordedSearch
from ekphory.retrieval.pipeline import Pipeline, StageDescription, describe
from ekphory.retrieval.presets import PRESETS
from ekphory.retrieval.presets import preset as find_preset
from ekphory.scope import DEFAULT_NAME, Scope, get_owner
from ekphory.search import MOST_HITS, NEWEST, SearchResult
from ekphory.service.configuration import Configuration
from ekphory.service.episodes import FACETS, Selection, Uids, around
from ekphory.service.handles import FEATURES, Handles, Place
from ekphory.store.protocol import IntArray
from ekphory.transfer import read_exported
from ekphory.types import (
    Hit,
    MemoryRecord,
    StageStatus,
    Trace,
    decode_metadata,
    is_pinned,
    now_utc,
    to_microseconds,
    to_utc,
)

# Why a hit is there, in sentences.

ReasonKind = Literal[
    "newest",
    "chain",
    "meaning",
    "words",
    "time",
    "weight",
    "reranker",
    "pinned",
    "parent",
    "superseded",
]
_NEARLY_ONE = 0.005
"""A factor that is not further from 1 changed nothing worth telling."""
_TWICE = 2.0
"""From here on a factor is told as one, and no share of more than 100 % is."""


class ShownReason(BaseModel):
    """One thing that speaks for a hit."""

    kind: ReasonKind
    sentence: str


_Told = tuple[ReasonKind, str]


def reasons(result: SearchResult, now: datetime) -> list[list[ShownReason]]:
    """Say of every hit why it is there, as seen at a moment."""
    if result.trace.preset == NEWEST:
        newest = ShownReason(kind="newest", sentence="One of the newest; nothing was asked.")
        return [[newest] for _ in result]
    told = [
        [
            *_chain(hit, result),
            *_superseded(hit, result.hits),
            *_found(hit, result.hits),
            *_moved(hit, now),
        ]
        for hit in result
    ]
    return [[ShownReason(kind=kind, sentence=text) for kind, text in each] for each in told]


def _superseded(hit: Hit, hits: Sequence[Hit]) -> Iterator[_Told]:
    if hit.since is not None:
        places = [place for place, each in enumerate(hits, start=1) if each.id == hit.superseded_by]
        what = f"hit {places[0]} holds" if places else "another memory holds"
        yield "superseded", f"Superseded: since {hit.since:%Y-%m-%d} {what} in its place."


def _chain(hit: Hit, result: SearchResult) -> Iterator[_Told]:
    hops = () if result.retrieval_trace is None else result.retrieval_trace.hops
    for number, hop in enumerate(hops, start=1):
        if hit.id in hop.memory_ids:
            yield "chain", f"States hop {number}: “{hop.query}”{hop.answer and f' → {hop.answer}'}."


def _found(hit: Hit, hits: Sequence[Hit]) -> Iterator[_Told]:
    """Say what each arm made of it."""
    if "cosine" in hit.scores:
        place = _place(hit, hits, "cosine")
        yield "meaning", f"{place} by meaning: cosine {hit.scores['cosine']:.2f}."
    share = hit.scores.get("lexical")
    if share is not None and share <= 0:
        yield "words", "Shares no word with the question."
    elif share is not None:
        place = _place(hit, hits, "lexical")
        whose = "" if hit.scores.get("bm25") else ", lent by its neighbours"
        # Every rare word of a short question can weigh more than a full match is held to.
        yield "words", f"{place} by words: {min(share, 1):.0%} of a full match{whose}."
    if hit.scores.get("time"):
        yield "time", f"Lies in the time asked for: {hit.scores['time']:.0%} sure."


def _pool_words(hit: Hit, _: datetime) -> str:
    more = "more" if hit.scores["boost_pool"] > 1 else "less"
    return f"its pool, {hit.memory.pool}, weighs {more} than others"


def _asked_words(hit: Hit, _: datetime) -> str:
    fits = "is" if hit.scores["boost_asked"] > 1 else "is not"
    kind = f"{hit.memory.type}, importance {hit.memory.importance:.2g}"
    return f"its kind ({kind}) {fits} what the question asks for"


_BOOSTS: dict[str, Callable[[Hit, datetime], str]] = {
    "boost_pool": _pool_words,
    "boost_origin": lambda hit, _: f"it comes from {hit.memory.path or hit.memory.source}",
    "boost_importance": lambda hit, _: f"its importance was given as {hit.memory.importance:.2g}",
    "boost_asked": _asked_words,
    "boost_age": lambda hit, now: f"it happened {format_age(hit.memory.at, now)}",
    "boost_time": lambda *_: "it lies in the time asked for",
    "boost_telling": lambda *_: "it was told soon after the time asked for",
}
"""By the name of a factor, why a hit has it."""


def _how_far(factor: float) -> str:
    if factor >= _TWICE:
        return f"Lifted {factor:.1f} times"
    return f"{'Lifted' if factor > 1 else 'Lowered'} by {abs(factor - 1):.0%}"


def _moved(hit: Hit, now: datetime) -> Iterator[_Told]:
    """Say what moved it up or down, and what it is shown with."""
    for name, because in _BOOSTS.items():
        if abs(hit.scores.get(name, 1) - 1) > _NEARLY_ONE:
            yield "weight", f"{_how_far(hit.scores[name])}: {because(hit, now)}."
    if "reranker" in hit.scores:
        yield "reranker", f"The reranker gives it {hit.scores['reranker']:.2f}."
    if is_pinned(hit.memory):
        yield "pinned", "A pinned rule, found by every search."
    if hit.text != hit.memory.text:
        yield "parent", "Shown with the text that it stands in."


def _place(hit: Hit, hits: Sequence[Hit], score: str) -> str:
    better = sum(each.scores.get(score, 0.0) > hit.scores[score] for each in hits)
    return f"No. {better + 1} of {len(hits)}"


# The fifteen stages of a search in a row: those that ran, were skipped, or are not there.


def _as_json(value: Any) -> Any:  # noqa: ANN401  whatever a stage tells of itself
    """Return what a stage tells of itself as JSON has it; what JSON lacks, as text."""
    if isinstance(value, Mapping):
        return {str(name): _as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_json(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


PlainSettings = Annotated[dict[str, JsonValue], BeforeValidator(_as_json)]


class ShownStage(BaseModel):
    """A stage of the search; number 0 opens the scope."""

    number: int
    name: str
    status: StageStatus | Literal["absent"]
    reason: str | None
    candidates_in: int
    candidates_out: int
    begins: float
    milliseconds: float
    purpose: str
    settings: PlainSettings
    detail: PlainSettings


def waterfall(trace: Trace, pipeline: Pipeline | None) -> list[ShownStage]:
    """Return all stages in the canonical order.

    Args:
        trace: What a search did.
        pipeline: The preset that it was made with; None where that is not known any more.
    """
    described = (
        {} if pipeline is None else {(each.number, each.name): each for each in describe(pipeline)}
    )
    rows: list[ShownStage] = []
    begins = 0.0
    for stage in trace.stages:
        known = _describe(described.pop((stage.number, stage.name), None))
        told = {entry.name: getattr(stage, entry.name) for entry in fields(stage)}
        rows.append(ShownStage(**told, **known, begins=begins))
        begins += stage.milliseconds
    nothing: dict[str, Any] = dict.fromkeys(("candidates_in", "candidates_out", "milliseconds"), 0)
    for each in described.values():
        # Of an empty query no stage runs, whatever the preset has.
        row = ShownStage(
            number=each.number,
            name=each.name,
            status="skipped" if each.used else "absent",
            reason="nothing was asked" if each.used else None,
            begins=begins if each.used else 0,
            detail={},
            **_describe(each if each.used else None),
            **nothing,
        )
        rows.append(row)
    return sorted(rows, key=lambda row: row.number)


def _describe(stage: StageDescription | None) -> dict[str, Any]:
    """Return a stage's purpose, and of its settings numbers, names, lists and tables of them."""
    if stage is None:
        return {"purpose": "", "settings": {}}
    shown = {
        name: value
        for name, value in stage.settings.items()
        if value is None or isinstance(value, bool | int | float | str | list | dict)
    }
    return {"purpose": stage.purpose, "settings": shown}


# Searching with any preset, and telling all of it: every stage, every score, every hop.

_SHOWN_OF_A_SEARCH = 5
"""So many of what one of the agent's searches found are told whole."""
_MOST_OTHERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a search gave, and all that it did.

    Attributes:
        now: The moment that it was asked for.
        preset: The preset that it was made with.
        result: What the search gave.
        reasons: Why each hit is there.
        rows: All stages.
        others: Memories that the agent found on its way and that are not hits.
        gone: How many hits of a recorded search no longer exist.
    """

    now: datetime
    preset: str
    result: SearchResult
    reasons: list[list[ShownReason]]
    rows: list[ShownStage]
    others: tuple[MemoryRecord, ...] = ()
    gone: int = 0


def _others(memory: Memory, result: SearchResult) -> tuple[MemoryRecord, ...]:
    events = () if result.retrieval_trace is None else result.retrieval_trace.events
    named: dict[str, None] = {}
    for event in events:
        if isinstance(event.body, HopResolved):
            named |= dict.fromkeys(event.body.memory_ids)
        elif isinstance(event.body, ToolReturned):
            named |= dict.fromkeys(event.body.memory_ids[:_SHOWN_OF_A_SEARCH])
    missing = [each for each in named if each not in {hit.id for hit in result}][:_MOST_OTHERS]
    if not missing:
        return ()
    return tuple(memory.list(filter=In(Field("id"), tuple(missing)), limit=_MOST_OTHERS))


# When memories happened: counted by hour, day, week … whichever makes a picture of few bars.

UnitName = Literal["hour", "day", "week", "month", "quarter", "year", "decade", "century"]

MOST_BARS = 72
_MONTHS_UNTIL_1970 = 1970 * 12
_FIRST, _LAST = np.datetime64("0001-01-01"), np.datetime64("9998-12-31T23:59:59")
"""No memory happened before or after."""


class ShownBar(BaseModel):
    """What happened in one unit of time, by type."""

    begins: datetime
    ends: datetime
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit of time.

    Attributes:
        name: What it is called.
        part: What it is made of, in numpy's letters: hours, days or months.
        length: How many of them.
        shift: How many of them of the unit that 1970 began in were over by then, or more units.
    """

    name: UnitName
    part: Literal["h", "D", "M"]
    length: int = 1
    shift: int = 0

    def number(self, at: IntArray) -> IntArray:
        """Return which unit each moment lies in."""
        parts = at.astype("datetime64[us]").astype(f"datetime64[{self.part}]").astype(np.int64)
        return np.asarray((parts + self.shift) // self.length, np.int64)

    def beginning(self, which: int) -> datetime:
        """Return when a unit begins."""
        found = np.datetime64(which * self.length - self.shift, self.part)
        held: datetime = min(max(found, _FIRST), _LAST).astype("datetime64[us]").item()
        return held.replace(tzinfo=UTC)


_UNITS = (
    _Unit("hour", "h"),
    _Unit("day", "D"),
    # 1970 began on a Thursday; weeks begin on Monday.
    _Unit("week", "D", 7, 3),
    _Unit("month", "M"),
    _Unit("quarter", "M", 3, _MONTHS_UNTIL_1970),
    _Unit("year", "M", 12, _MONTHS_UNTIL_1970),
    _Unit("decade", "M", 120, _MONTHS_UNTIL_1970),
    _Unit("century", "M", 1_200, _MONTHS_UNTIL_1970),
)


def count_by_time(
    at: IntArray, types: NDArray[np.str_], counts: IntArray | None = None
) -> tuple[UnitName | None, list[ShownBar]]:
    """Count memories by time: a unit, and bars without a gap from the earliest to the latest.

    Args:
        at: When each happened, microseconds since 1970.
        types: The type of each.
        counts: How many memories each stands for; None for one.
    """
    if not len(at):
        return None, []
    unit = next((each for each in _UNITS if _count_bars(each, at) <= MOST_BARS), _UNITS[-1])
    numbers = unit.number(at)
    first = int(numbers.min())
    length = int(numbers.max()) - first + 1
    weights = np.ones(len(at), np.int64) if counts is None else counts
    by_type = {
        str(name): np.bincount(numbers[chosen] - first, weights[chosen], minlength=length)
        for name in np.unique(types)
        for chosen in [types == name]
    }
    bars = [
        ShownBar(
            begins=unit.beginning(first + place),
            ends=unit.beginning(first + place + 1),
            counts={name: int(each[place]) for name, each in by_type.items() if each[place]},
        )
        for place in range(length)
    ]
    return unit.name, bars


def _count_bars(unit: _Unit, at: IntArray) -> int:
    first, last = unit.number(np.array([at.min(), at.max()]))
    return int(last - first) + 1


# What a project's memories are like: how many by pool, type, importance and time.

Columns = Mapping[str, NDArray[Any]]
Masks = Mapping[str, NDArray[np.bool_]]
IMPORTANCE_STEPS = 10


MOST_NAMES = 200
"""Of more sessions, users, sources or entities those with the most memories are named."""
_COLUMNS = (*FACETS, "at", "importance")
_NAMING: Filter = Contains(MetadataField(ENTITIES), "")
"""Whatever names something."""


class OutlineAnswer(BaseModel):
    """How many memories there are, by facet, tenth of importance, and time."""

    total: int
    pools: dict[str, int]
    types: dict[str, int]
    sessions: dict[str, int]
    users: dict[str, int]
    sources: dict[str, int]
    entities: dict[str, int]
    importance: list[int]
    unit: UnitName | None
    bars: list[ShownBar]


@dataclass(frozen=True, slots=True)
class Mentions:
    """What memories name, a pair for each entity of each.

    Attributes:
        rows: The place of the memory among all.
        names: The entity, as `kind: name`.
    """

    rows: IntArray
    names: NDArray[np.object_]


def find_mentions(keys: IntArray, naming: Columns) -> Mentions:
    """Return what memories name.

    Args:
        keys: Of all memories, in order.
        naming: Key and metadata of those that name something.
    """
    places = {key: row for row, key in enumerate(keys.tolist())}
    told = zip(naming["key"].tolist(), naming["metadata"].tolist(), strict=True)
    pairs = [
        (places[key], name)
        for key, text in told
        if key in places
        for name in split_entities(str(decode_metadata(text)[ENTITIES]))
    ]
    rows, names = zip(*pairs, strict=True) if pairs else ((), ())
    return Mentions(np.array(rows, np.int64), np.array(names, object))


def count_memories(
    columns: Columns, mentions: Mentions, let_through: Mapping[str, NDArray[np.bool_]]
) -> OutlineAnswer:
    """Count memories.

    Each count but `total` is of what the rest of the selection lets through: the pools stand there
    as they would be with any pool chosen, and so do the others.

    Args:
        columns: The fields in `_COLUMNS` of all memories.
        mentions: What they name.
        let_through: Which of them each part of a selection lets through, by what it is about.
    """

    def but_for(*left_out: str) -> NDArray[np.bool_]:
        kept = np.ones(len(columns["key"]), np.bool_)
        for name, mask in let_through.items():
            if name not in left_out:
                kept &= mask
        return kept

    in_time = but_for("since", "until")
    unit, bars = count_by_time(columns["at"][in_time], columns["type"][in_time])
    facets = {f"{name}s": _count(columns[name][but_for(name)]) for name in FACETS}
    named = mentions.names[but_for("entity")[mentions.rows]]
    tenths, _ = np.histogram(
        columns["importance"][but_for("importance")], bins=IMPORTANCE_STEPS, range=(0, 1)
    )
    total, importance = int(np.count_nonzero(but_for())), tenths.tolist()
    return OutlineAnswer(
        total=total,
        **facets,
        entities=_count(named),
        importance=importance,
        unit=unit,
        bars=bars,
    )


def _let_through(
    columns: Columns, mentions: Mentions, selection: Selection
) -> dict[str, NDArray[np.bool_]]:
    """Return which memories each part of a selection lets through, but for the text."""
    chosen = {name: getattr(selection, name) for name in FACETS}
    masks = {name: columns[name] == value for name, value in chosen.items() if value is not None}
    if selection.entity is not None:
        naming = mentions.rows[mentions.names == selection.entity]
        masks["entity"] = np.isin(np.arange(len(columns["key"])), naming)
    if selection.least_importance is not None:
        masks["importance"] = columns["importance"] >= selection.least_importance
    if selection.since is not None:
        masks["since"] = columns["at"] >= to_microseconds(selection.since)
    if selection.until is not None:
        masks["until"] = columns["at"] < to_microseconds(selection.until)
    return masks


def _count(names: NDArray[Any]) -> dict[str, int]:
    return {name: count for name, count in Counter(names).most_common(MOST_NAMES) if name}


# How the store grew: counted by when memories were written.

_MOST_GROWN = 8
"""So many names are told apart; the others are counted together."""
_OTHERS = "others"


class GrowthAnswer(BaseModel):
    """How many memories of today were written when, by project and by pool."""

    total: int
    unit: UnitName | None
    projects: list[ShownBar]
    pools: list[ShownBar]
    counts: dict[str, int]


def join_growth(parts: Sequence[GrowthAnswer]) -> GrowthAnswer:
    """Return what several stores hold together."""
    unit, projects = _join_bars([bar for part in parts for bar in part.projects])
    _, pools = _join_bars([bar for part in parts for bar in part.pools])
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
    total = sum(part.total for part in parts)
    return GrowthAnswer(total=total, unit=unit, projects=projects, pools=pools, counts=counts)


def _join_bars(bars: Sequence[ShownBar]) -> tuple[UnitName | None, list[ShownBar]]:
    told = [(to_microseconds(bar.begins), *each) for bar in bars for each in bar.counts.items()]
    at, names, counts = zip(*told, strict=True) if told else ((), (), ())
    return count_by_time(
        np.array(at, np.int64), np.array(names, np.str_), np.array(counts, np.int64)
    )


def _few_names(names: NDArray[Any]) -> NDArray[np.str_]:
    common = {name for name, _ in Counter(names).most_common(_MOST_GROWN)}
    return np.array([name if name in common else _OTHERS for name in names], np.str_)


# The verbs of the inspector.


class Inspection:
    """Looks into a project's memories, leaving no trace of it, and changes single ones."""

    def __init__(self, handles: Handles, uids: Uids, configuration: Configuration) -> None:
        self._handles = handles
        self._uids = uids
        self._configuration = configuration

    def search(
        self,
        place: Place,
        query: str,
        *,
        preset: str | None = None,
        condition: str = "",
        **settings: Any,  # noqa: ANN401  as `Memory.search` has them
    ) -> Examined:
        """Answer a question and tell how.

        Args:
            place: The project.
            query: The question; empty for the newest.
            preset: Name of a preset; None for the service's.
            condition: In the filter grammar; blank for none.
            settings: Those of `Memory.search`.

        Raises:
            InvalidInput: The question cannot be used.
        """
        now = settings.pop("now", None) or now_utc()
        if settings.get("agent_mode"):
            settings["agent_mode"] = follows = bool(query.strip())
            if follows:
                settings["agent_options"] = AgentOptions(settings=self._configuration.agent())
        with self._handles.episodes(place) as memory:
            pipeline = memory.preset if preset is None else find_preset(preset)
            read = self._uids.read_filter(place, condition)
            result = memory.search(query, now=now, filter=read, preset=pipeline, **settings)
            others = _others(memory, result)
        return Examined(
            now=now,
            preset=pipeline.name,
            result=result,
            reasons=reasons(result, now),
            rows=waterfall(result.trace, pipeline),
            others=others,
        )

    def outline(self, place: Place, selection: Selection) -> OutlineAnswer:
        """Count a project's memories by facet, importance and time."""
        scope = _scope_of(place)
        with self._handles.engine(place) as engine:
            store = engine.store
            store.version()
            columns = store.scan_fields(in_view(scope, EVERYTHING), _COLUMNS)
            naming = store.scan_fields(in_view(scope, _NAMING), ("metadata",))
            mentions = find_mentions(columns["key"], naming)
            masks = _let_through(columns, mentions, selection)
            if selection.text:
                with_text = store.keys(in_view(scope, Selection(text=selection.text).condition()))
                masks["text"] = np.isin(columns["key"], with_text)
        return count_memories(columns, mentions, masks)

    def growth(self, org: str | None, project: str | None) -> GrowthAnswer:
        """Count memories by when they were written; None counts all organisations or projects."""
        scope = Scope(org=org, project=project)
        names = ("org", "project", "pool", "created_at")
        with self._handles.engine() as engine:
            engine.store.version()
            columns = engine.store.scan_fields(in_view(scope, EVERYTHING), names)
        said = np.array([not project.endswith(FEATURES) for project in columns["project"]], bool)
        columns = {name: values[said] for name, values in columns.items()}
        owners = [
            f"{org or DEFAULT_NAME} / {project or DEFAULT_NAME}"
            for org, project in zip(columns["org"], columns["project"], strict=True)
        ]
        counted = _few_names(np.array(owners, object))
        unit, projects = count_by_time(columns["created_at"], counted)
        _, pools = count_by_time(columns["created_at"], _few_names(columns["pool"]))
        return GrowthAnswer(
            total=len(owners), unit=unit, projects=projects, pools=pools, counts=_count(counted)
        )

    def around(self, place: Place, memory_id: str, *, before: int, after: int) -> Records:
        """Read a memory with what was said before and after it, in that order.

        Raises:
            MemoryNotFound: The project holds no such memory.
        """
        with self._handles.episodes(place) as memory:
            record = memory.get(memory_id)
            if record.session is None:
                return [record]
            return around(memory, record, None, before=before, after=after)

    def forget(self, place: Place, memory_id: str, *, purge: bool) -> dict[str, Any] | None:
        """Forget a memory; return what takes it back, or None where it was wiped from the disk.

        Raises:
            MemoryNotFound: The project holds no such memory.
            InvalidInput: It is an earlier version.
        """
        with self._handles.engine(place) as engine:
            kept = read_exported(engine, _scope_of(place), memory_id)
        with self._handles.episodes(place) as memory:
            memory.forget(memory_id, purge=purge)
        return None if purge else kept

    def take_back(self, place: Place, kept: Mapping[str, Any]) -> str:
        """Undo `forget`; return the memory's id.

        Raises:
            InvalidInput: It is not what `forget` gave, or belongs elsewhere.
        """
        with self._handles.episodes(place) as memory:
            report = memory.add_exported([kept])
        for failure in report.failed:
            problem = f"its {failure.field} must be as `forget` in this project gave it"
            raise InvalidInput("undo", dict(kept), problem, "Send it back unchanged")
        return str(kept["id"])

    def recorded(self, which: RecordedIn, number: int) -> tuple[RecordedSearch, Examined]:
        """Read a recorded search as it was, with those of its hits that are still there.

        Raises:
            NotThere: There is no such record.
        """
        place = Place(which.org, which.project)
        record = self._handles.recorded(which).find(which, number)
        if record is None:
            raise NotThere("There is no such search, or it is not recorded any more.")
        told = record.content["hits"]
        ids = tuple(hit["id"] for hit in told)
        with self._handles.episodes(place) as memory:
            found = memory.list(filter=In(Field("id"), ids), limit=MOST_HITS) if ids else []
        there = {(each.id, get_owner(each)): each for each in found}
        pairs = [(hit, there.get((hit["id"], tuple(hit["owner"])))) for hit in told]
        hits = tuple(
            Hit(each.id, each.text, hit["score"], hit["scores"], each)
            for hit, each in pairs
            if each is not None
        )
        content = record.content
        result = SearchResult(
            hits, record.trace, abstained=content["abstained"], order=content["order"]
        )
        now = to_utc(content["now"], field="now")
        return record, Examined(
            now=now,
            preset=record.preset,
            result=result,
            reasons=reasons(result, now),
            rows=waterfall(record.trace, PRESETS.get(record.preset)),
            gone=len(told) - len(hits),
        )


def _scope_of(place: Place) -> Scope:
    return Scope(org=place.org, project=place.project)
