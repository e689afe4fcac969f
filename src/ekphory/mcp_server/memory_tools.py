"""The six tools `remember`, `recall`, `forget`, `update`, `list`, `explain`; what users attach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from ekphory.capture import clean_records
from ekphory.errors import InvalidInput
from ekphory.filters.grammar import parse_filter
from ekphory.filters.tree import And, Comparison, In
from ekphory.filters.tree import Field as StoredField
from ekphory.mcp_server import tool
from ekphory.memory import Memory
from ekphory.prompting.block import escape_text
from ekphory.prompting.recall_block import strip_recall_blocks
from ekphory.search import LISTED, SearchResult
from ekphory.store.protocol import Order
from ekphory.types import (
    PINNED,
    RULES,
    MemoryRecord,
    MemoryType,
    Scalar,
    StageTrace,
    Trace,
    is_pinned,
)

# The tool `remember`: keep one text.


class GivenMemory(tool.Arguments):
    """A memory to keep, as `remember_many` takes each too."""

    text: str
    """One fact or event, in a sentence that is understood by itself later."""

    type: MemoryType | None = None
    """episodic: it happened. semantic: it is so. procedural: how it is done. Predicted where it is
    not given.
    """

    importance: float | None = None
    """0 to 1; predicted where it is not given."""

    at: str | None = None
    """When it happened, ISO 8601; now where it is not given."""

    expires_at: str | None = None
    """From then on it is not recalled, ISO 8601."""

    producer: str | None = None
    """Who said it."""

    source: str | None = None
    """Where it comes from, such as a URL."""

    pool: tool.Pool = None
    id: str | None = None
    """An id of your own; one is made where it is not given."""

    metadata: dict[str, tool.MetadataValue] | None = None
    """Values that a filter can ask for, as metadata.key."""

    @field_validator("metadata")
    @classmethod
    def _pins_no_rule(
        cls, given: dict[str, Scalar] | None, others: ValidationInfo
    ) -> dict[str, Scalar] | None:
        if others.data.get("pool") == RULES and given and given.get(PINNED) is True:
            raise ValueError("pins a rule, and only people do: leave it out")
        return given


class Remember(GivenMemory):
    """A memory to keep."""

    redact: tool.Redact = False


class Remembered(tool.McpAnswer):
    """What became of it."""

    status: Literal["added", "already there", "nothing new"]
    id: str | None = None


def _remember(memory: Memory, given: Remember) -> tool.Answered:
    report = memory.add(**given.model_dump())
    if taken := find_taken_ids(memory, [given], redact=given.redact) if report.skipped else None:
        raise taken[0]
    if not report.ids:
        text = "Nothing new: the text holds only what was recalled."
        return tool.Answered(Remembered(status="nothing new"), (text,))
    memory_id = report.ids[0]
    if report.added:
        return tool.Answered(Remembered(status="added", id=memory_id), ("Remembered.",))
    return tool.Answered(Remembered(status="already there", id=memory_id), ("Already remembered.",))


def find_taken_ids(
    memory: Memory, given: Sequence[GivenMemory], *, redact: bool
) -> dict[int, InvalidInput]:
    """Return an error for each that was not kept, as a memory with another text has its id."""
    ids = tuple({each.id for each in given if each.id})
    if not ids:
        return {}
    stored = memory.list(filter=In(StoredField("id"), ids), limit=tool.MOST_SHOWN)
    held = {(record.id, record.text) for record in stored}
    told: Iterable[Mapping[str, Any]] = [each.model_dump(exclude_none=True) for each in given]
    texts = [
        strip_recall_blocks(each["text"]) for each in (clean_records(told) if redact else told)
    ]
    problem, remedy = "is that of a memory with another text", "Change it by update, or give no id"
    return {
        place: InvalidInput("id", each.id, problem, remedy)
        for place, (each, text) in enumerate(zip(given, texts, strict=True))
        if each.id in dict(held) and (each.id, text) not in held
    }


# The tool `recall`: find the memories that answer a question.


class Recall(tool.Arguments):
    """A question to memory."""

    query: str
    """A whole question, or some words; an empty text gives the newest."""

    k: tool.Count = 10
    pool: tool.Pool = None
    filter: tool.Condition = None
    min_score: tool.LeastScore = None
    time: tool.TimeInWords = "boost"
    timezone: tool.Timezone = "UTC"
    superseded: tool.Superseded = "recede"
    agent_mode: bool = False
    """Follow the question from memory to memory, where one leads to another."""

    max_tokens: tool.MostTokens = tool.DEFAULT_TOKENS


class Recalled(tool.McpAnswer):
    """What was found, the likeliest first."""

    hits: list[tool.ToolHit]
    abstained: bool = False
    """Memories were found, but none reaches min_score."""

    withheld: list[tool.Withheld] | None = None


def _search(memory: Memory, given: Recall | Explain) -> SearchResult:
    settings = given.model_dump(exclude={"pool", "max_tokens", "id"})
    return memory.search(**settings, pools=None if given.pool is None else [given.pool])


def _recall(memory: Memory, given: Recall) -> tool.Answered:
    found = _search(memory, given)
    block = found.answer_context(given.max_tokens)
    result, withheld = tool.drop_steering(found)
    if withheld:
        block = result.answer_context(given.max_tokens)
    hits = list(map(tool.show_hit, result))
    data = Recalled(hits=hits, abstained=found.abstained, withheld=withheld or None)
    texts = tool.texts_of(result, block, given.max_tokens, withheld=withheld)
    return tool.Answered(data, texts)


# The tool `forget`: one memory by its id, or all that fulfil a condition.


_IDS_A_CONDITION = 500


class Forget(tool.Arguments):
    """What to forget."""

    id: str | None = None
    """The memory's id."""

    filter: tool.Condition = None
    expected_count: int | None = None
    """With a filter: how many memories it should match, as the total of list says. If it matches
    another number, nothing is forgotten.
    """

    purge: bool = False
    """Leave no byte of the text on disk; takes longer."""


class Forgotten(tool.McpAnswer):
    """What is gone."""

    forgotten: int
    purged: bool


def _forget(memory: Memory, given: Forget) -> tool.Answered:
    if given.filter is not None and given.id is None:
        count = _forget_counted(memory, given.filter, given)
    else:
        count = memory.forget(given.id, filter=given.filter, purge=given.purge)
    noun = "memory" if count == 1 else "memories"
    wiped = ", and the text is wiped from the disk" if given.purge else ""
    data = Forgotten(forgotten=count, purged=given.purge)
    return tool.Answered(data, (f"{count:,} {noun} forgotten{wiped}.",))


def _forget_counted(memory: Memory, condition: str, given: Forget) -> int:
    """Forget what was counted, and nothing that is written meanwhile."""
    matched = memory.count(filter=condition)
    _check_expected(matched, given.expected_count)
    ids = tuple(each.id for each in memory.list(filter=condition, limit=matched + 1))
    _check_expected(len(ids), given.expected_count)
    count = 0
    for start in range(0, len(ids), _IDS_A_CONDITION):
        some = In(StoredField("id"), ids[start : start + _IDS_A_CONDITION])
        is_last = start + _IDS_A_CONDITION >= len(ids)
        which = And((parse_filter(condition), some))
        count += memory.forget(filter=which, purge=given.purge and is_last)
    return count


def _check_expected(count: int, expected: int | None) -> None:
    if count != expected:
        remedy = "Look at them with list, and give their number if all are to be forgotten"
        raise InvalidInput("expected_count", expected, f"this filter matches {count:,}", remedy)


# The tool `update`: replace fields of one memory.


class Update(tool.Arguments):
    """What to change; fields that are not given stay."""

    id: str
    """The memory's id, as recall or list gave it."""

    text: str | None = None
    """The whole new text."""

    type: MemoryType | None = None
    importance: float | None = None
    """0 to 1."""

    at: str | None = None
    """When it happened, ISO 8601."""

    expires_at: str | None = None
    """From then on it is not recalled, ISO 8601."""

    metadata: dict[str, tool.MetadataValue] | None = None
    """Replaces all of the metadata."""


class Updated(tool.McpAnswer):
    """Which memory has changed, and under which id its earlier version is kept."""

    id: str
    supersedes: str | None = None


def _update(memory: Memory, given: Update) -> tool.Answered:
    before = memory.get(given.id)
    metadata = before.metadata if given.metadata is None else given.metadata
    if is_pinned(before) or is_pinned(replace(before, metadata=metadata)):
        problem = "is a pinned rule, which enters every later prompt, or would be one"
        raise InvalidInput("id", given.id, problem, "Ask a person to change it")
    record = memory.update(given.id, **given.model_dump(exclude={"id"}))
    data = Updated(id=record.id, supersedes=record.supersedes)
    return tool.Answered(data, ("Updated; the earlier version is kept as history.",))


# The tool `list`: memories in order, a page at a time.


class ListMemoriesArguments(tool.Arguments):
    """Which page."""

    filter: tool.Condition = None
    limit: Annotated[int, Field(ge=1, le=tool.MOST_SHOWN)] = 20
    """How many to give."""

    offset: Annotated[int, Field(ge=0)] = 0
    """How many to pass over first."""

    order: Order = "newest"
    """By when it happened, or in the order of writing."""

    max_tokens: tool.MostTokens = tool.DEFAULT_TOKENS


class Listed(tool.McpAnswer):
    """One page of the memories."""

    memories: list[tool.ListedMemory]
    total: int
    """How many fulfil the filter, on all pages."""

    withheld: list[tool.Withheld] | None = None


def _list(memory: Memory, given: ListMemoriesArguments) -> tool.Answered:
    page = memory.list(**given.model_dump(exclude={"max_tokens"}))
    total = memory.count(filter=given.filter)
    hits = tool.as_current_hits(memory, page)
    result, withheld = tool.drop_steering(SearchResult(hits, Trace(LISTED)))
    shown = list(map(tool.show_listed, result))
    data = Listed(memories=shown, total=total, withheld=withheld or None)
    block = result.to_prompt(given.max_tokens)
    texts = tool.texts_of(result, block, given.max_tokens, withheld=withheld)
    return tool.Answered(data, (*texts, f"{total:,} in all."))


# The tool `explain`: how a search came to its hits, or how a memory came to its text.


class Explain(tool.Arguments):
    """What to explain: a question, with the settings it was asked with, or a memory."""

    query: str | None = None
    """The question that recall was asked."""

    id: str | None = None
    """A memory, to see its earlier versions."""

    k: tool.Count = 10
    pool: tool.Pool = None
    filter: tool.Condition = None
    min_score: tool.LeastScore = None
    time: tool.TimeInWords = "boost"
    timezone: tool.Timezone = "UTC"
    superseded: tool.Superseded = "recede"


class ToolStage(BaseModel):
    """What one stage of the search did."""

    name: str
    status: Literal["ran", "skipped", "degraded"]
    reason: str | None = None
    candidates_in: int
    candidates_out: int
    milliseconds: float


class Scored(BaseModel):
    """A hit's probability, and the raw scores that it comes from."""

    id: str
    score: float
    scores: dict[str, float]


class ToolVersion(tool.ListedMemory):
    """One version of a memory."""

    current: bool
    """Whether it holds now; else it was replaced, or another memory holds in its place."""


class Explained(tool.McpAnswer):
    """The stages and scores of a search, or the versions of a memory, newest first."""

    preset: str | None = None
    stages: list[ToolStage] | None = None
    hits: list[Scored] | None = None
    versions: list[ToolVersion] | None = None
    withheld: list[tool.Withheld] | None = None


def _explain(memory: Memory, given: Explain) -> tool.Answered:
    if given.id is not None and given.query is None:
        return _versions(memory, given.id)
    if given.query is None or given.id is not None:
        problem = "names nothing to explain" if given.id is None else "stands beside an id"
        raise InvalidInput("query", given.query, problem, "Give a query or an id")
    result, withheld = tool.drop_steering(_search(memory, given))
    data = Explained(
        preset=result.trace.preset,
        stages=[_show_stage(stage) for stage in result.trace.stages],
        hits=[Scored(id=hit.id, score=hit.score, scores=dict(hit.scores)) for hit in result],
        withheld=withheld or None,
    )
    lines = [_in_words(stage) for stage in result.trace.stages]
    hits = [f"hit {place}: {hit.score:.2f}" for place, hit in enumerate(result, start=1)]
    return tool.Answered(data, ("\n".join([*lines, *hits]),))


def _versions(memory: Memory, memory_id: str) -> tool.Answered:
    hits = tool.as_current_hits(memory, memory.history(memory_id))
    result, withheld = tool.drop_steering(SearchResult(hits, Trace(LISTED)))
    shown = [
        ToolVersion(
            **tool.show_listed(hit).model_dump(),
            current=hit.superseded_by is hit.memory.superseded_by is None,
        )
        for hit in result
    ]
    data = Explained(versions=shown, withheld=withheld or None)
    return tool.Answered(data, (result.to_prompt(tool.DEFAULT_TOKENS), _tell_state(shown)))


def _tell_state(versions: Sequence[ToolVersion]) -> str:
    for place, version in enumerate(versions, start=1):
        if version.current:
            return f"Index {place} is current."
        if version.since is not None:
            newer = tool.to_json(version.superseded_by)
            return f"Index {place} is superseded by {newer} since {version.since:%Y-%m-%d}."
    return "No index is current."


def _show_stage(stage: StageTrace) -> ToolStage:
    shown = ToolStage.model_validate(stage, from_attributes=True)
    return shown.model_copy(update={"milliseconds": round(stage.milliseconds, 3)})


def _in_words(stage: StageTrace) -> str:
    why = f" ({stage.reason})" if stage.reason else ""
    counts = f"{stage.candidates_in} in, {stage.candidates_out} out"
    return f"{stage.name}: {stage.status}{why}, {counts}, {stage.milliseconds:.1f} ms"


# A model reads all of them in every conversation: six at most.
OWN_TOOLS: tuple[tool.AnyTool, ...] = (
    tool.make_tool("remember", Remember, _remember, Remembered, effect="adds"),
    tool.make_tool("recall", Recall, _recall, Recalled),
    tool.make_tool("forget", Forget, _forget, Forgotten, effect="forgets"),
    tool.make_tool("update", Update, _update, Updated, effect="changes"),
    tool.make_tool("list", ListMemoriesArguments, _list, Listed),
    tool.make_tool("explain", Explain, _explain, Explained),
)


# What a user attaches to a conversation: prompts, and resources that hold memories as data.

_RECENT, _OF_A_SESSION = 20, 100
_RESOURCE_TOKENS = 20_000
"""Of what a user attaches, which is to be there whole; a model that lists asks for less."""
_NOTHING = tool.McpAnswer()
"""Prompts and resources are texts alone."""


def _show(result: SearchResult, max_tokens: int) -> str:
    """Return a result as the escaped block, with its ids, and without what tries to steer."""
    shown, withheld = tool.drop_steering(result)
    block = shown.answer_context(max_tokens)
    return "\n".join(tool.texts_of(shown, block, max_tokens, withheld=withheld))


# Prompts, each beside the tool of its name.


class RecallPrompt(tool.Arguments):
    """A question that is asked with what is remembered."""

    query: str
    """What you want to know."""

    max_tokens: tool.MostTokens = tool.DEFAULT_TOKENS


class RememberPrompt(tool.Arguments):
    """What the model is to remember."""

    text: str = ""
    """What is to be remembered; empty for what matters of all so far."""


def _ask(memory: Memory, given: RecallPrompt) -> tool.Answered:
    block = _show(memory.search(given.query), given.max_tokens)
    return tool.Answered(_NOTHING, (f"{tool.WORDS['texts']['recalled']}\n\n{block}", given.query))


def _ask_to_remember(_: Memory, given: RememberPrompt) -> tool.Answered:
    texts = tool.WORDS["texts"]
    if not given.text.strip():
        return tool.Answered(_NOTHING, (texts["remember_all"],))
    marked = f"<to-remember>{escape_text(given.text)}</to-remember>"
    return tool.Answered(_NOTHING, (f"{texts['remember_marked']}\n\n{marked}",))


_PROMPTS: tuple[tool.AnyTool, ...] = (
    tool.make_tool("recall", RecallPrompt, _ask, kind="prompt"),
    tool.make_tool("remember", RememberPrompt, _ask_to_remember, effect="adds", kind="prompt"),
)


def prompts_beside(tools: Iterable[tool.AnyTool]) -> list[tool.AnyTool]:
    """Return the prompts that ask for one of these tools."""
    names = {each.name for each in tools}
    return [prompt for prompt in _PROMPTS if prompt.name in names]


# Resources, named by their addresses.


class Named(tool.Arguments):
    """What an address names."""

    name: str


def _read_recent(memory: Memory, _: tool.Arguments) -> tool.Answered:
    return _records(memory, memory.list(limit=_RECENT))


def _read_session(memory: Memory, given: Named) -> tool.Answered:
    of_session = Comparison(StoredField("session"), "eq", given.name)
    found = memory.list(filter=of_session, limit=_OF_A_SESSION)
    if not found:
        remedy = "Take a session that recall or list gave"
        raise InvalidInput("session", given.name, "holds no memories", remedy)
    return _records(memory, found[::-1])


def _read_memory(memory: Memory, given: Named) -> tool.Answered:
    return _records(memory, [memory.get(given.name)])


def _records(memory: Memory, records: Sequence[MemoryRecord]) -> tool.Answered:
    hits = tool.as_current_hits(memory, records)
    told = _show(SearchResult(hits, Trace(LISTED)), _RESOURCE_TOKENS)
    return tool.Answered(_NOTHING, (told,))


RESOURCES: tuple[tool.AnyTool, ...] = (
    tool.make_tool("ekphory://recent", tool.Arguments, _read_recent, kind="resource"),
    tool.make_tool("ekphory://sessions/{session}", Named, _read_session, kind="resource"),
    tool.make_tool("ekphory://memories/{id}", Named, _read_memory, kind="resource"),
)


def find_resource(uri: str) -> tuple[str, dict[str, str]]:
    """Return the name of the resource at an address and its arguments; an unknown one as it is."""
    for resource in RESOURCES:
        start, _, rest = resource.name.partition("{")
        if rest and uri.startswith(start) and len(uri) > len(start):
            return resource.name, {"name": unquote(uri[len(start) :])}
    return uri, {}
