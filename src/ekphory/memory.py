"""`Memory` and `AsyncMemory`: a store, bound to a scope, with one verb per idea."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit

from ekphory import capture as capturing
from ekphory import engine, history, mistakes, reembed, resident, revise, search, transfer, write
from ekphory.agent.provider import AgentOptions, cancellable
from ekphory.agent.session import Searches, agent_search
from ekphory.capture import CaptureReport
from ekphory.config import read_recorded, read_settings
from ekphory.errors import InvalidInput, StoreClosed, StoreError
from ekphory.filters.tree import Filter
from ekphory.http_service import shown
from ekphory.models.chat import Chat
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import (
    check_model,
    choose_reranker,
    load_configured_chat,
    load_configured_embedder,
    load_configured_reranker,
    load_embedder,
)
from ekphory.models.reranker import RerankingModel, Turn, bundled_reranker, read_dialogue
from ekphory.prompting.injection import find_injection
from ekphory.prompting.recall_block import strip_recall_blocks
from ekphory.recorded_searches import RecordedSearches, Surface
from ekphory.reembed import ReembedReport
from ekphory.retrieval.pipeline import NO_OPTIONAL_MODELS, OptionalModels, Pipeline
from ekphory.retrieval.presets import PRESETS
from ekphory.retrieval.presets import preset as preset_named
from ekphory.retrieval.stages.rerank import GateStatus, gate_status
from ekphory.scope import Scope, condition
from ekphory.search import Question, SearchResult
from ekphory.spans import TraceSpan
from ekphory.store.protocol import Order, StoreHealth, Verification
from ekphory.types import (
    PINNED,
    RULES,
    SHARED_POOLS,
    MemoryRecord,
    MemoryType,
    Progress,
    Revision,
    RevisionKind,
    Scalar,
    SupersededUse,
    TimeUse,
    WriteReport,
    check_count,
    ignore_progress,
    now_utc,
    to_utc,
)
from ekphory.write import make_draft, make_message_drafts

if TYPE_CHECKING:
    from ekphory.remote import RemoteMemory

Records = list[MemoryRecord]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _verb(
    do: Callable[Concatenate[Memory, Arguments], Result],
) -> Callable[Concatenate[Memory, Arguments], Result]:
    """Let a method ask the server, where the handle is on one."""
    signature = inspect.signature(do)
    flags = [name for name, each in signature.parameters.items() if each.annotation == "bool"]

    @functools.wraps(do)
    def call(self: Memory, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        for name in flags:
            if not isinstance(value := kwargs.get(name, False), bool):
                raise InvalidInput(name, value, "must be true or false", "Give True or False")
        if self._remote is None:
            return do(self, *args, **kwargs)
        _, *given = signature.bind(self, *args, **kwargs).arguments.items()
        result: Result = self._remote.ask(do, dict(given))
        return result

    return call


class Memory:
    """The memories of one scope, in an embedded store or on a server.

    Any number of handles, of any scope, may have one path open, in any number of threads; they
    share one writer. Other processes may read and write the same directory. Close a handle, or
    use it in a `with` block, to end its background work.

    `pickle` and `copy` open another handle on the same path and scope, with the preset and the
    models of the same names; keys come from the environment there.

    On the URL of an `ekphory serve` the verbs are done there, with that server's models, and
    return and raise the same; `docs/server.md` tells what differs. Nothing is asked before the
    first verb.

    Args:
        path: A directory, any Lance URI (`s3://`, `gs://`, `az://`), or the URL of a server
            (`http://`, `https://`).
        org: The organisation of the scope. A bound field of the scope is filled into what is
            written and required of what is read; an unbound one restricts nothing.
        project: The project of the scope.
        agent: The agent of the scope.
        user: The user of the scope.
        session: The session of the scope.
        embedder: An `EmbeddingModel`, or what `load_embedder` takes; None for the bundled model.
            A store whose vectors are of another model is searched by words, until `reembed`.
        reranker: A `RerankingModel`, or the directory, hub id or URL that `load_reranker` takes,
            which is used by the presets that rerank, a service only by those that say so; None for
            the bundled one, and `none` for none.
        chat: A `Chat`, or the URL of a service that `load_chat` takes, which is used by the presets
            that ask a language model; None for none.
        preset: The pipeline of searches that name none, by its name, or one of your own; None for
            `balanced`, or for what a server says.
        api_key: The key for a server; None for `EKPHORY_API_KEY`, or for none.

    Attributes:
        surface: Where its searches come from, as records say; None records none of them. Without
            `EKPHORY_RECORD_SEARCHES` none are.

    Raises:
        InvalidInput: The path, a scope field or the preset cannot be used.
        StoreError: The store cannot be opened or made.
    """

    surface: Surface | None = "python"

    def __init__(  # noqa: PLR0913  the scope has five fields
        self,
        path: str | Path,
        *,
        org: str | None = None,
        project: str | None = None,
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        embedder: EmbeddingModel | str | None = None,
        reranker: RerankingModel | str | None = None,
        chat: Chat | str | None = None,
        preset: str | Pipeline | None = None,
        api_key: str | None = None,
    ) -> None:
        self.preset = preset_named(preset)
        self.scope = Scope(org=org, project=project, agent=agent, user=user, session=session)
        self._given = {"embedder": embedder, "reranker": reranker, "chat": chat, "preset": preset}
        self._remote = _connect(path, self.scope, self._given, api_key)
        self._shared: engine.Engine | None = None
        self._models = NO_OPTIONAL_MODELS
        if self._remote is not None:
            return
        self._embedder = _load_embedder(embedder)
        self._models = _load_optional_models(reranker, chat)
        self._recorded = read_recorded()
        self._shared = engine.acquire(path, self._embedder)
        if self._models.chat is not None:
            self._shared.detector.chat = self._models.chat

    @_verb
    def add(  # noqa: PLR0913  a memory's fields
        self,
        text: str,
        *,
        id: str | None = None,  # noqa: A002  the field's name everywhere else
        at: str | datetime | None = None,
        producer: str | None = None,
        produced_for: str | None = None,
        role: str | None = None,
        session: str | None = None,
        sequence: int | None = None,
        pool: str | None = None,
        type: MemoryType | None = None,  # noqa: A002  likewise
        importance: float | None = None,
        expires_at: str | datetime | None = None,
        source: str | None = None,
        metadata: Mapping[str, Scalar] | None = None,
        redact: bool = False,
    ) -> WriteReport:
        """Remember one text; on return it is durable.

        With an `id` the id alone decides whether it is there already; without one its scope,
        producer, text, `at`, session and sequence, as given. A `type` or `importance` that is not
        given is what the embedder predicts, where it can, else "unknown" and 0.5. With `redact`
        the secrets found in the text, `source` and `metadata`, such as keys and passwords, are
        cut out before.

        Returns:
            A report with `added` 1 or `skipped` 1, and the memory's id in `ids`.

        Raises:
            InvalidInput: A field cannot be stored; nothing was written.
        """
        given = {
            "text": text,
            "id": id,
            "at": at,
            "producer": producer,
            "produced_for": produced_for,
            "role": role,
            "session": session,
            "sequence": sequence,
            "pool": pool,
            "type": type,
            "importance": importance,
            "expires_at": expires_at,
            "source": source,
            "metadata": metadata,
        }
        records = capturing.clean_records([given]) if redact else [given]
        drafts = [make_draft(each, scope=self.scope, now=now_utc()) for each in records]
        return _traced(lambda: write.add_drafts(self._engine, self.scope, drafts))

    @_verb
    def add_messages(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        session: str | None = None,
        pool: str | None = None,
    ) -> WriteReport:
        """Remember chat messages, `[{"role": …, "content": …, …}]`, in order and in one commit.

        `content` is the text, `role` also the producer where none is given, and every other key a
        field of a memory. Repeating the same call adds nothing.

        Raises:
            InvalidInput: A message cannot be stored; nothing was written.
        """
        drafts = make_message_drafts(messages, scope=self.scope, session=session, pool=pool)
        return _traced(lambda: write.add_drafts(self._engine, self.scope, drafts))

    @_verb
    def capture(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        session: str | None = None,
        source: str | None = None,
        labels: Sequence[str] = (),
        redact: bool = True,
        since: int = 0,
    ) -> CaptureReport:
        """Keep what is worth remembering of messages, without a language model.

        Preferences, facts, decisions, procedures, mistakes, tasks and events are kept; greetings,
        progress notes, what tools print and what tries to steer a model are not. Repeating the
        same call adds nothing; with other labels it gives these too to what is there already. Where
        the handle has a chat model it writes each memory as a
        sentence that is understood alone. `docs/capture.md` tells how it works.

        Args:
            messages: `[{"role": "user", "content": "…", "at": "2026-05-04T09:00:00Z"}, …]`.
            session: What they belong to.
            source: Where they come from.
            labels: Names of topics; each memory gets those that fit it, also one that is there.
            redact: Whether secrets are cut out before anything is written.
            since: So many messages were captured before; they are context alone.

        Raises:
            InvalidInput: A message cannot be used; nothing was written.
        """
        with TraceSpan("capture") as span:
            report = capturing.capture(
                self._engine,
                self.scope,
                messages,
                session=session,
                source=source,
                labels=labels,
                redact=redact,
                since=since,
                chat=self._models.chat,
            )
            span.note(messages=len(messages), kept=len(report.kept), redactions=report.redactions)
        return report

    @_verb
    def add_many(
        self,
        records: Iterable[Mapping[str, Any]],
        *,
        redact: bool = False,
        on_progress: write.ReportProgress | None = None,
    ) -> WriteReport:
        """Remember any number of records, streaming, in bounded memory.

        Args:
            records: Dicts with the field names of `MemoryRecord`.
            redact: Whether secrets are cut out of their texts before anything is written.
            on_progress: Called with the report so far after every batch.

        Returns:
            How many were added and skipped, and each that failed with its reason. What is
            counted as added is durable, also when a later batch raises.
        """
        given = capturing.clean_records(records) if redact else records
        return _traced(
            lambda: write.add_all(self._engine, self.scope, given, on_progress=on_progress)
        )

    @_verb
    def learn_mistake(self, what: str, *, fix: str, shared: bool = False) -> str:
        """Remember what went wrong and how it is avoided; return the memory's id.

        Searches weigh mistakes more than other memories.

        Args:
            what: What went wrong.
            fix: How it is put right, or avoided.
            shared: Whether the whole project sees it, and not this agent alone.

        Raises:
            InvalidInput: A text is empty or cannot be stored.
        """
        told = {"what": "Say what went wrong", "fix": "Say how it is put right"}
        for name, text in (("what", what), ("fix", fix)):
            if not isinstance(text, str) or not strip_recall_blocks(text).strip():
                raise InvalidInput(name, text, "is empty", told[name])
        text, pool = f"{what}\nFix: {fix}", "shared_mistakes" if shared else "agent_mistakes"
        metadata = {"class": "mistake"}
        return self.add(text, pool=pool, type="procedural", metadata=metadata).ids[0]

    @_verb
    def add_rule(self, text: str) -> str:
        """Add a rule that every search of the project finds first; return the memory's id.

        It enters every later prompt of all agents: only people should add rules.

        Raises:
            InvalidInput: The text is empty or cannot be stored, tries to steer a model past its
                instructions, or holds a secret.
        """
        _check_rule(text)
        return self.add(text, pool=RULES, type="procedural", metadata={PINNED: True}).ids[0]

    @_verb
    def promote(self, id: str, *, pool: str) -> str:  # noqa: A002  the field's name
        """Copy a memory into a pool that the whole project sees; return the copy's id.

        The copy names the memory that it was made of, in its metadata as `promoted_from`. Promoting
        the same memory into the same pool again adds nothing.

        Raises:
            MemoryNotFound: There is none with that id in this scope.
            InvalidInput: The pool is not shared, or is that of rules and the text cannot be one.
        """
        if pool not in SHARED_POOLS:
            remedy = f"Choose one of {', '.join(SHARED_POOLS)}"
            raise InvalidInput("pool", pool, "is not a shared pool", remedy)
        record = self.get(id)
        if pool == RULES:
            _check_rule(record.text)
        return write.promote(self._engine, self.scope, record, pool=pool)

    @_verb
    def add_exported(self, records: Iterable[Mapping[str, Any]]) -> WriteReport:
        """Take memories back as `export` wrote them, whole: ids, moments and earlier versions.

        What is there already, by its id or its content, stays as it is.

        Args:
            records: Dicts with all fields of `MemoryRecord`, `fingerprint`, and `versions`, the
                earlier versions in the same form, oldest first.

        Returns:
            How many were added and skipped, and each that failed with its reason; a memory and
            its versions are written together or not at all.
        """
        return _traced(lambda: transfer.add_exported(self._engine, self.scope, records))

    @_verb
    def search(  # noqa: PLR0913  a search's settings
        self,
        query: str,
        *,
        k: int = 10,
        now: str | datetime | None = None,
        pools: Sequence[str] | None = None,
        filter: str | Filter | None = None,  # noqa: A002  the field's standard term
        min_score: float | None = None,
        preset: str | Pipeline | None = None,
        context: Sequence[Turn] = (),
        time: TimeUse = "boost",
        timezone: str | tzinfo = "UTC",
        superseded: SupersededUse = "recede",
        agent_mode: bool = False,
        agent_options: AgentOptions | None = None,
    ) -> SearchResult:
        """Find the memories that answer a query; the empty query lists the newest.

        Args:
            query: A question or some words.
            k: How many hits, 1 to 1,000; so many come whenever the scope holds them and
                `min_score` is not given.
            now: The moment it is asked; None for the current one.
            pools: Only these pools; None for all that the scope sees.
            filter: A condition in the filter grammar, or a tree from `ekphory.filters.tree`.
            min_score: Only hits of at least this probability; with none, the result is empty
                and `abstained`.
            preset: Name of a pipeline, or one of your own; None for that of this handle.
            context: The dialogue before the question, oldest turn first: texts, or messages
                `{"role": …, "content": …}`. A reranker understands the question through it; a
                preset with context dedup leaves out what it holds.
            time: What a time in the query's words does ("last Tuesday", "in our third session"):
                `boost` lifts what lies in it, and lists it in order if nothing else is asked
                for; `filter` returns nothing else; `ignore` reads no time.
            timezone: Where the days of the query begin and end: a name of the IANA database,
                or a `tzinfo`.
            superseded: What becomes of memories that later ones replace, correct or end: `recede`
                puts them below, and above where the question asks for the past; `hide` leaves them
                out; `ignore` ranks as if nothing superseded anything.
            agent_mode: Follow the question from memory to memory where one lookup is not enough;
                the result has a `retrieval_trace`. See `docs/agent.md`.
            agent_options: How the agent works; None reads the configuration.

        Raises:
            InvalidInput: An argument cannot be used.
        """
        asked = Question(
            query=query,
            k=k,
            now=now_utc() if now is None else to_utc(now, field="now"),
            pools=pools,
            filter=self._condition(filter),
            min_score=min_score,
            preset=self.preset if preset is None else preset,
            context=read_dialogue(context),
            time=time,
            timezone=timezone,
            superseded=superseded,
        )
        with TraceSpan("search", k=k, agent_mode=agent_mode) as span:
            if agent_mode:
                searches = Searches(self._engine, self.scope, asked, self._models)
                result = agent_search(searches, agent_options)
            else:
                result = search.search(self._engine, self.scope, asked, models=self._models)
            span.note(preset=result.trace.preset, hits=len(result), abstained=result.abstained)
        self._record(asked, result)
        return result

    @_verb
    def related(self, id: str, *, k: int = 10) -> Records:  # noqa: A002  the field's name
        """Return the memories that are like one, the nearest first, without itself.

        What came from the same file is listed by `list(filter="path = 'notes/plan.md'")`.

        Args:
            id: Whose.
            k: How many, 1 to 999.

        Raises:
            MemoryNotFound: There is none with that id in this scope.
            InvalidInput: An argument cannot be used.
        """
        return search.related(
            self._engine, self.scope, id, k=k, pipeline=self.preset, models=self._models
        )

    @_verb
    def gate_status(self, *, preset: str | Pipeline | None = None) -> GateStatus:
        """Return when a preset's gate lets the reranker run, and how often it did.

        The decisions are those of recorded searches (`EKPHORY_RECORD_SEARCHES`).

        Args:
            preset: Name of a pipeline, or one of your own; None for that of this handle.
        """
        pipeline = self.preset if preset is None else preset_named(preset)
        decided = RecordedSearches(self._engine.uri).gate_decisions(self.scope, pipeline.name)
        models = self._engine.embedder.identity, self._models.reranker
        return gate_status(pipeline, *models, decided=decided)

    @_verb
    def get(self, id: str) -> MemoryRecord:  # noqa: A002  the field's name everywhere else
        """Read one memory by its id.

        Raises:
            MemoryNotFound: There is none in this scope.
            InvalidInput: Several wider scopes within this one use that id.
        """
        return history.get(self._engine, self.scope, id)

    @_verb
    def list(
        self,
        *,
        filter: str | Filter | None = None,  # noqa: A002  the field's standard term
        limit: int = 100,
        offset: int = 0,
        order: Order = "newest",
    ) -> Records:
        """Read memories in order, `limit` of them after the first `offset`."""
        page = history.Page(limit=limit, offset=offset, order=order)
        return history.list_memories(self._engine, self.scope, self._condition(filter), page)

    @_verb
    def count(self, *, filter: str | Filter | None = None) -> int:  # noqa: A002  likewise
        """Return how many memories the scope holds."""
        return history.count(self._engine, self.scope, self._condition(filter))

    @_verb
    def history(self, id: str) -> Records:  # noqa: A002  likewise
        """Return the memory and the versions it replaced, newest first."""
        return history.history(self._engine, self.scope, id)

    @_verb
    def update(  # noqa: PLR0913  a memory's fields
        self,
        id: str,  # noqa: A002  the field's name everywhere else
        *,
        text: str | None = None,
        at: str | datetime | None = None,
        type: MemoryType | None = None,  # noqa: A002  likewise
        importance: float | None = None,
        expires_at: str | datetime | None = None,
        metadata: Mapping[str, Scalar] | None = None,
    ) -> MemoryRecord:
        """Replace fields of a memory; the earlier version is kept as history.

        The memory keeps its id; the earlier version gets one of its own, named by `supersedes`.
        A new text is of now, unless `at` says otherwise; a type or importance that was predicted
        is predicted anew with it, and one that was given stays. One that is given here counts as
        given from then on.

        Raises:
            MemoryNotFound: There is none with that id in this scope.
            InvalidInput: Nothing to change, or a value that cannot be stored.
        """
        given = {
            "text": text,
            "at": at,
            "type": type,
            "importance": importance,
            "expires_at": expires_at,
            "metadata": metadata,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        if text is not None and self.get(id).pool == RULES:
            _check_rule(text)
        with TraceSpan("update"):
            return history.update(self._engine, self.scope, id, changes)

    @_verb
    def supersede(
        self,
        old: str,
        *,
        by: str,
        kind: RevisionKind = "replaces",
        at: str | datetime | None = None,
    ) -> Revision:
        """Note that one memory supersedes another; nothing of either is changed.

        Searches put the older one below from then on, and say so. `unsupersede` takes it back.

        Args:
            old: Id of the memory that does not hold any more.
            by: Id of the one that takes its place, in the same org, project, user, agent and pool.
            kind: What it does to the older one. What `excepts` from it does so until the time that
                its text names, or for a fortnight.
            at: When that took effect; None for when the newer one happened.

        Raises:
            MemoryNotFound: There is none with one of the ids in this scope.
            ScopeError: They are of different scopes or pools.
            InvalidInput: They are the same memory, or a value cannot be used.
        """
        return revise.supersede(self._engine, self.scope, old, by=by, kind=kind, at=at)

    @_verb
    def unsupersede(self, *, revision: str | None = None, batch: str | None = None) -> int:
        """Take back one decision, or all of a batch, whoever made it; returns how many.

        Raises:
            InvalidInput: There is none in this scope, or both or neither were given.
        """
        return revise.unsupersede(self._engine, self.scope, revision=revision, batch=batch)

    @_verb
    def conflicts(
        self, *, scan: bool = False, limit: int = 100, on_progress: Progress = ignore_progress
    ) -> tuple[Revision, ...]:
        """Return the decisions that are not sure enough to act, the newest first.

        `supersede` confirms one, `unsupersede` sets one aside.

        Args:
            scan: Whether all memories of the scope are compared first, such as those that were
                written by an earlier ekphory; what is sure enough acts then.
            limit: Most of them.
            on_progress: Called, in a scan, with how many memories are compared, and of how many.
        """
        return revise.conflicts(
            self._engine, self.scope, scan=scan, limit=limit, on_progress=on_progress
        )

    @_verb
    def revisions(
        self, *, of: Sequence[str] | None = None, limit: int = 100
    ) -> tuple[revise.DecidedPair, ...]:
        """Return the decisions that act or wait for somebody to look, each with its memories.

        Args:
            of: Only those on these memories, by their ids.
            limit: Most of them, the newest first.

        Raises:
            InvalidInput: An argument cannot be used.
            MemoryNotFound: There is none with one of these ids in this scope.
        """
        return revise.revisions(self._engine, self.scope, of=of, limit=limit)

    @_verb
    def settle(self, timeout: float | None = None) -> None:
        """Wait until all that was written has been compared with earlier memories.

        Raises:
            TimeoutError: It takes longer than so many seconds; the work goes on.
        """
        self._engine.detector.settle(timeout=timeout)

    @_verb
    def timeline(
        self, topic: str, *, k: int = 20, now: str | datetime | None = None
    ) -> tuple[revise.State, ...]:
        """Return the states of a topic in the order in which they held.

        The topic is that of the first hit which has several states and is half as likely as the
        best hit, or more.

        Args:
            topic: Words that name it, as for `search`.
            k: Most states, the newest ones.
            now: The moment it is asked; None for the current one.

        Raises:
            InvalidInput: The topic is empty, or an argument cannot be used.
        """
        check_count("k", k)
        if not isinstance(topic, str) or not topic.strip():
            raise InvalidInput("topic", topic, "names nothing", "Give words such as 'where I live'")
        moment = now_utc() if now is None else to_utc(now, field="now")
        found = self.search(topic, now=moment, superseded="ignore")
        ids = [hit.id for hit in found if hit.score >= found[0].score / 2]
        return revise.timeline(self._engine, self.scope, ids, k=k, now=moment)

    @_verb
    def profile(
        self, *, user: str | None = None, k: int = 50, now: str | datetime | None = None
    ) -> tuple[revise.ProfileEntry, ...]:
        """Return the lasting facts and preferences that hold now, the most important first.

        Args:
            user: Whose; None for all that the scope sees.
            k: Most entries.
            now: The moment it is asked; None for the current one.
        """
        moment = now_utc() if now is None else to_utc(now, field="now")
        return revise.profile(self._engine, self.scope, user=user, k=k, now=moment)

    @_verb
    def repeated_mistakes(self, *, least: int = 2) -> tuple[mistakes.RepeatedMistake, ...]:
        """Count the mistakes that several agents or users of the project have, the commonest first.

        Each keeps its mistakes in the pool `agent_mistakes` of its own scope, and neither who they
        are nor what they wrote is told. What a memory in `shared_mistakes` says is left out. Texts
        count as the same mistake where their vectors are nearly the same. A handle that binds no
        project compares within each project.

        Args:
            least: How many must have one, 2 or more. Those who name neither an agent nor a user
                count as one.

        Raises:
            InvalidInput: `least` is below 2, or the handle binds an agent, user or session.
            EmbedderMismatch: The model of the store's vectors is not at hand.
        """
        return mistakes.repeated_mistakes(self._engine, self.scope, least=least, now=now_utc())

    @_verb
    def forget(
        self,
        id: str | None = None,  # noqa: A002  the field's name everywhere else
        *,
        filter: str | Filter | None = None,  # noqa: A002  likewise
        purge: bool = False,
    ) -> int:
        """Forget one memory by its id, or all that match a filter; returns how many.

        They are hidden at once, with their history. With `purge` the data files are rewritten
        so that no byte of them is left on disk, which takes seconds for each gigabyte.

        Raises:
            MemoryNotFound: There is none with that id in this scope.
            InvalidInput: Neither an id nor a filter was given, or both.
        """
        if id is None and filter is None:
            raise InvalidInput("id", id, "names nothing to forget", "Give an id or a filter")
        if id is not None and filter is not None:
            raise InvalidInput("id", id, "stands beside a filter", "Give an id or a filter")
        with TraceSpan("forget", purge=purge) as span:
            if id is not None:
                gone = history.hide_one(self._engine, self.scope, id)
            else:
                gone = history.hide(self._engine, self.scope, self._condition(filter))
            span.note(forgotten=gone)
            if purge:
                resident.release(self._engine.uri)
                history.purge(self._engine)
                RecordedSearches(self._engine.uri).drop_gone(self._engine)
        return gone

    @_verb
    def export(
        self, target: str | Path | IO[bytes], *, on_progress: Progress | None = None
    ) -> transfer.ExportReport:
        """Write what this scope itself wrote to JSON Lines, with all earlier versions.

        A file is replaced when its export is whole and durable, and not before. What has expired
        is left out. `docs/export.md` tells the form; `ekphory import` reads it.

        Args:
            target: A file, or a binary stream, which stays open.
            on_progress: Called with how many memories are written, and of how many.

        Raises:
            InvalidInput: The target is a folder, or lies in none.
            StoreError: The store cannot be read.
        """
        tell = on_progress or ignore_progress
        if isinstance(target, str | Path):
            return transfer.export_to_file(self._engine.parts, self.scope, Path(target), tell)
        return transfer.export_to_stream(self._engine.parts, self.scope, target, tell)

    @_verb
    def health(self) -> StoreHealth:
        """Measure the whole store, all scopes together, as `ekphory doctor` reports it."""
        return self._engine.health()

    @_verb
    def repair(self) -> None:
        """Merge files, rebuild indexes, and remove what no version needs, as kills leave it."""
        self._engine.writer.repair()

    @_verb
    def verify(self, *, on_progress: Progress = ignore_progress) -> Verification:
        """Compare every row of the whole store with its checksum, and read the ledger.

        `on_progress` is told rows done and in all.
        """
        return self._engine.verify(on_progress)

    def reembed(
        self,
        embedder: EmbeddingModel | str | None = None,
        *,
        on_progress: Progress = ignore_progress,
    ) -> ReembedReport:
        """Embed the whole store anew, all scopes together, while others search and write.

        New vectors are made beside the present ones, which serve until one commit switches to the
        new ones, and are kept for `undo_reembed`. If it breaks off, calling it again goes on.

        Args:
            embedder: As for `Memory`; None for that of this handle.
            on_progress: Called with how many memories have new vectors, and of how many.

        Raises:
            StoreLocked: The store is being embedded anew by somebody else.
        """
        if embedder is not None:
            self._embedder = _load_embedder(embedder)
        with TraceSpan("reembed"):
            return reembed.reembed(self._engine, self._embedder, on_progress=on_progress)

    def undo_reembed(self, *, on_progress: Progress = ignore_progress) -> ReembedReport:
        """Switch back to the vectors of the model before; a second time switches forth again.

        What was written since is embedded where that model is at hand; otherwise words alone find
        it, until `reembed` with that model.

        Raises:
            StoreError: No earlier vectors are kept.
        """
        return reembed.undo_reembed(self._engine, on_progress=on_progress)

    def drop_previous_vectors(self) -> ReembedReport:
        """Remove the vectors that are kept for `undo_reembed`."""
        return reembed.drop_previous_vectors(self._engine)

    def close(self) -> None:
        """End the handle; the last one on a store ends its background work."""
        if self._remote is not None:
            remote, self._remote = self._remote, None
            remote.close()
        if self._shared is not None:
            shared, self._shared = self._shared, None
            engine.release(shared)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Show where the memories are and whose they are, on a line."""
        shared = self._shared.uri if self._shared is not None else "closed"
        where = shared if self._remote is None else self._remote.url
        return f"<Memory {where!r}{''.join(f', {each}' for each in self.scope.named())}>"

    def __reduce__(self) -> tuple[Callable[[], Memory], tuple[()], dict[str, object]]:
        """Return what `pickle` and `copy` need: path, scope and names, and never a key.

        Raises:
            InvalidInput: A model or the preset is an object, or a URL holds a key.
            StoreClosed: The handle was closed.
        """
        path = self._engine.uri if self._remote is None else self._remote.url
        given = {"path": path, **self._given}
        names = _names_of({name: value for name, value in given.items() if value is not None})
        opening = functools.partial(type(self), **names, **asdict(self.scope))
        return opening, (), {"surface": self.surface}

    def _record(self, asked: Question, result: SearchResult) -> None:
        if self._recorded and self.surface is not None and asked.query.strip():
            RecordedSearches(self._engine.uri).keep(
                asked, result, scope=self.scope, surface=self.surface, most=self._recorded
            )

    def _condition(self, given: str | Filter | None) -> Filter:
        return condition(given, scope=self.scope)

    @property
    def _engine(self) -> engine.Engine:
        if self._remote is not None:
            raise StoreError(
                f"{self._remote.url} is a server, and this needs the files of the store. Do it "
                "where they lie."
            )
        if self._shared is None:
            raise StoreClosed("This handle was closed. Open the store again.")
        if self._shared.process != os.getpid():
            raise StoreClosed("This handle is of the process before a fork. Open Memory here too.")
        return self._shared


def _connect(
    path: str | Path, scope: Scope, given: Mapping[str, Any], api_key: str | None
) -> RemoteMemory | None:
    """Return the way to a server; None where the path is that of a store.

    Raises:
        InvalidInput: What is given cannot be used there.
    """
    if not is_server(path):
        if api_key is not None:
            problem = "a store has no key"
            raise InvalidInput("api_key", "***", problem, "Give it with a server's URL")
        return None
    for name in ("embedder", "reranker", "chat"):
        if given[name] is not None:
            remedy = "Leave it out, and name it where the server is started"
            raise InvalidInput(name, given[name], "a server has its own models", remedy)
    from ekphory.remote import RemoteMemory

    key = api_key or read_settings().api_key
    return RemoteMemory(str(path), api_key=key, scope=scope, preset=given["preset"])


def is_server(path: str | Path) -> bool:
    """Return whether a path is the URL of a server, which has its own models."""
    return isinstance(path, str) and path.lower().startswith(("http://", "https://"))


def _traced(add: Callable[[], WriteReport]) -> WriteReport:
    with TraceSpan("add") as span:
        report = add()
        span.note(added=report.added, skipped=report.skipped, failed=len(report.failed))
    return report


def _names_of(given: Mapping[str, object]) -> dict[str, str]:
    """Return the arguments that are names; a preset of the package is named."""
    names = {}
    for field, value in given.items():
        name = next((name for name, pipeline in PRESETS.items() if pipeline is value), value)
        if not isinstance(name, str):
            problem = "is an object, which cannot be copied with the handle"
            remedy = "Name it by a text, or open Memory where the copy is wanted"
            raise InvalidInput(field, type(value), problem, remedy)
        parts = urlsplit(name)
        if "@" in parts.netloc or parts.query:
            problem = "holds a key, which is never copied with the handle"
            raise InvalidInput(field, shown(name), problem, "Set keys in the environment")
        names[field] = name
    return names


def _load_embedder(embedder: EmbeddingModel | str | None) -> EmbeddingModel:
    check_model("embedder", embedder, method="encode")
    if not (embedder is None or isinstance(embedder, str)):
        return embedder
    return load_configured_embedder(replace(read_settings(), embedder=embedder)) or load_embedder()


def _load_optional_models(
    reranker: RerankingModel | str | None, chat: Chat | str | None
) -> OptionalModels:
    check_model("reranker", reranker, method="score")
    check_model("chat", chat, method="complete")
    if not isinstance(reranker, str | None) and not isinstance(chat, str):
        return OptionalModels(reranker=reranker, chat=chat)
    settings = read_settings()
    if reranker is None:
        # What the environment says of a reranker that it names is not said of the bundled one.
        reranker = bundled_reranker() if settings.reranker else load_configured_reranker(settings)
    if isinstance(reranker, str):
        reranker = choose_reranker(reranker, settings)
    if isinstance(chat, str):
        chat = load_configured_chat(replace(settings, chat_url=chat))
    return OptionalModels(reranker=reranker, chat=chat)


# `AsyncMemory`: each verb is made from that of `Memory`.


def _awaitable(
    verb: Callable[Concatenate[Memory, Arguments], Result],
) -> Callable[Concatenate[AsyncMemory, Arguments], Coroutine[Any, Any, Result]]:
    @functools.wraps(verb)
    async def call(
        self: AsyncMemory, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        cancelled = threading.Event()
        with cancellable(cancelled):
            try:
                return await asyncio.to_thread(verb, self.memory, *args, **kwargs)
            except asyncio.CancelledError:
                # A session of the agent looks for this, and ends.
                cancelled.set()
                raise

    return call


def _constructor(
    make: Callable[Arguments, Memory],
) -> Callable[Concatenate[AsyncMemory, Arguments], None]:
    @functools.wraps(Memory.__init__)
    def construct(self: AsyncMemory, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        self.memory = make(*args, **kwargs)

    return construct


_construct = _constructor(Memory)


def _check_rule(text: object) -> None:
    """Raise where a text must not stand in every later prompt; a secret in it is not shown."""
    if not isinstance(text, str):
        return  # as adding it says
    if text.strip() and not strip_recall_blocks(text).strip():
        raise InvalidInput("text", text, "holds nothing but recalled memories", "Give the rule")
    shown, secrets = capturing.redact(text)
    if secrets:
        problem = "holds a secret, and a rule enters every later prompt"
        raise InvalidInput("text", shown, problem, "Say where the secret is kept, not what it is")
    found = find_injection(text)
    if found.rule is not None:
        problem = f"reads as an attempt to steer a model ({found.rule}), and a rule enters every "
        remedy = "Say what agents should do, without naming their other instructions"
        raise InvalidInput("text", shown, f"{problem}later prompt", remedy)


class AsyncMemory:
    """A `Memory` whose verbs run in threads and are awaited.

    Example:
        async with AsyncMemory("./memories") as memory:
            await memory.add("The staging key rotates on Mondays")
    """

    memory: Memory
    __init__ = _construct

    add = _awaitable(Memory.add)
    add_messages = _awaitable(Memory.add_messages)
    add_many = _awaitable(Memory.add_many)
    capture = _awaitable(Memory.capture)
    learn_mistake = _awaitable(Memory.learn_mistake)
    add_rule = _awaitable(Memory.add_rule)
    promote = _awaitable(Memory.promote)
    revisions = _awaitable(Memory.revisions)
    add_exported = _awaitable(Memory.add_exported)
    search = _awaitable(Memory.search)
    related = _awaitable(Memory.related)
    gate_status = _awaitable(Memory.gate_status)
    get = _awaitable(Memory.get)
    list = _awaitable(Memory.list)
    count = _awaitable(Memory.count)
    history = _awaitable(Memory.history)
    update = _awaitable(Memory.update)
    supersede = _awaitable(Memory.supersede)
    unsupersede = _awaitable(Memory.unsupersede)
    conflicts = _awaitable(Memory.conflicts)
    settle = _awaitable(Memory.settle)
    timeline = _awaitable(Memory.timeline)
    profile = _awaitable(Memory.profile)
    repeated_mistakes = _awaitable(Memory.repeated_mistakes)
    forget = _awaitable(Memory.forget)
    export = _awaitable(Memory.export)
    health = _awaitable(Memory.health)
    repair = _awaitable(Memory.repair)
    reembed = _awaitable(Memory.reembed)
    undo_reembed = _awaitable(Memory.undo_reembed)
    drop_previous_vectors = _awaitable(Memory.drop_previous_vectors)
    verify = _awaitable(Memory.verify)
    close = _awaitable(Memory.close)

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()
