"""Fixed candidates: what the first stage found for every question, kept in a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from ekphory import __version__
from ekphory.errors import DatasetError
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory.retrieval.pipeline import Pipeline, SearchState, describe, read_candidates
from ekphory.retrieval.presets import BALANCED
from ekphory.retrieval.rerank import asked, read_passages
from ekphory.retrieval.stages.rerank import GateReranker, Rerank
from ekphory_lab.evaluation.datasets import Dataset, EvaluationQuery, Passage, read_json_lines
from ekphory_lab.evaluation.metrics import FloatArray
from ekphory_lab.evaluation.runner import Progress, silent
from ekphory_lab.evaluation.systems import EkphorySystem

# Fixed candidates: what the first stage found for every question, the same for every reranker.

FIRST_STAGE_SCORES = ("ranking", "probability", "fused", "cosine", "lexical")
"""What is kept of the first stage: its order, its probability, and what they come from."""


@dataclass(frozen=True, slots=True)
class CandidateList:
    """What one search found.

    Attributes:
        key: Pool and id of the question.
        searched: The pool that was searched: the question's own, or another conversation.
        asked: The question, as a reranker gets it.
        ids: The passages found, best first.
        scores: Each of `FIRST_STAGE_SCORES`, parallel to `ids`.
    """

    key: tuple[str, str]
    searched: str
    asked: RerankQuery
    ids: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...]]

    def column(self, name: str) -> FloatArray:
        """Return one score of the first stage, shape (candidates,)."""
        return np.array(self.scores[name], np.float64)


@dataclass(frozen=True, slots=True)
class CandidateIdentity:
    """What decides which candidates are found.

    Attributes:
        dataset: Name of the set.
        data: SHA-256 of its files.
        queries: How many questions were put.
        embedder: Identity of the first stage's embedder.
        first_stage: SHA-256 of the first stage's settings.
        top: How many candidates were kept for each question.
    """

    dataset: str
    data: str
    queries: int
    embedder: str
    first_stage: str
    top: int


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """The candidates of all questions of a set.

    Attributes:
        identity: What they were made from.
        passages: What a reranker reads, by pool and id.
        own: Every question in its own pool, in the set's order.
        elsewhere: Every question in another conversation, which does not answer it; empty for a
            set of one pool.
    """

    identity: CandidateIdentity
    passages: Mapping[str, Mapping[str, RerankPassage]]
    own: tuple[CandidateList, ...]
    elsewhere: tuple[CandidateList, ...]

    def read(self, found: CandidateList, *, most: int | None = None) -> list[RerankPassage]:
        """Return the first passages of a list, as a reranker gets them."""
        pool = self.passages[found.searched]
        return [pool[passage_id] for passage_id in found.ids[:most]]


# Finds the candidates: the product's default search up to where a reranker would read.

TOP = 100
ELSEWHERE_TOP = 50
"""In another conversation no more is looked at than the presets let a reranker read."""

FIRST_STAGE = Pipeline(
    "first stage",
    [stage for stage in BALANCED.stages if not isinstance(stage, GateReranker | Rerank)],
    summary="The default preset without a reranker.",
)

_SCORE_DIGITS = 6


def candidate_identity(
    dataset: Dataset, embedder: EmbeddingModel, *, top: int = TOP
) -> CandidateIdentity:
    """Say what candidates of this set would be made from."""
    settings = [asdict(stage) for stage in describe(FIRST_STAGE)]
    described = json.dumps(settings, sort_keys=True, default=str)
    return CandidateIdentity(
        dataset=dataset.name,
        data=dataset.sha256,
        queries=len(dataset.queries),
        embedder=str(embedder.identity),
        first_stage=hashlib.sha256(described.encode()).hexdigest(),
        top=top,
    )


def find_candidates(
    dataset: Dataset,
    *,
    embedder: EmbeddingModel,
    top: int = TOP,
    progress: Progress = silent,
) -> CandidateSet:
    """Put every question to its own pool, and to another conversation where there is one.

    The passages are those that stage 12 of a search would give a reranker, with their neighbours.
    A date that the set does not say is left out, where a search would show the day of writing.

    Args:
        dataset: The questions and the pools.
        embedder: Embedder of the store.
        top: How many candidates to keep in the question's own pool.
        progress: Is told after each pool and each question.
    """
    own: list[CandidateList] = []
    elsewhere: list[CandidateList] = []
    with EkphorySystem(embedder=embedder) as system:
        searches: dict[str, _CandidateSearch] = {}
        for done, (pool, passages) in enumerate(dataset.pools.items(), start=1):
            searches[pool] = _CandidateSearch(pool, passages, system)
            progress("index", done, len(dataset.pools))
        for done, query in enumerate(dataset.queries, start=1):
            own.append(searches[query.pool].find(query, top))
            other = another_conversation(dataset, query.pool)
            if other is not None:
                elsewhere.append(searches[other].find(query, min(top, ELSEWHERE_TOP)))
            progress("find candidates", done, len(dataset.queries))
    identity = candidate_identity(dataset, embedder, top=top)
    found = {pool: search.found for pool, search in searches.items()}
    return CandidateSet(identity, found, tuple(own), tuple(elsewhere))


def another_conversation(dataset: Dataset, pool: str) -> str | None:
    """Return the next pool, of the first after the last, in which nobody of this pool speaks.

    Where all pools share a speaker (`user` and `assistant`) it is the next one.

    Returns:
        None where the set has one pool.
    """
    names = list(dataset.pools)
    place = names.index(pool)
    others = names[place + 1 :] + names[:place]
    speakers = _speakers(dataset.pools[pool])
    strangers = [name for name in others if not speakers & _speakers(dataset.pools[name])]
    return next(iter(strangers or others), None)


class _CandidateSearch:
    """Searches one pool; a stage where a reranker would read keeps what that would be given.

    Attributes:
        found: What a reranker reads of every passage found so far, by id.
    """

    number = Rerank.number
    name = "keep candidates"
    needs = frozenset({"probability", "cosine", "lexical"})
    gives: frozenset[str] = frozenset()

    def __init__(self, pool: str, passages: Sequence[Passage], system: EkphorySystem) -> None:
        self.found: dict[str, RerankPassage] = {}
        self._pool = pool
        self._dated = {each.id: each.at is not None for each in passages}
        self._top = TOP
        self._last: CandidateList | None = None
        stages = [stage for stage in FIRST_STAGE.stages if stage.number < Rerank.number]
        after = FIRST_STAGE.stages[len(stages) :]
        pipeline = Pipeline("candidates", [*stages, self, *after])
        self._search = system.searched(pool, passages, pipeline)

    def find(self, query: EvaluationQuery, top: int) -> CandidateList:
        """Put a question to the pool."""
        nothing = dict.fromkeys(FIRST_STAGE_SCORES, ())
        empty = CandidateList(query.key, self._pool, RerankQuery(query.text), (), nothing)
        self._top, self._last = top, empty
        self._search(query, top)
        found = replace(self._last, key=query.key)
        is_timed = query.at is not None or any(self._dated.values())
        return found if is_timed else replace(found, asked=replace(found.asked, now=None))

    def skip_reason(self, state: SearchState) -> str | None:
        return None if len(state.candidates) else "no candidates"

    def run(self, state: SearchState) -> SearchState:
        candidates, passages = read_passages(state, most=self._top)
        _, records = read_candidates(state, most=self._top)
        named = {**candidates.scores, "ranking": candidates.ranking}
        scores = {
            name: tuple(round(float(value), _SCORE_DIGITS) for value in named[name][: len(records)])
            for name in FIRST_STAGE_SCORES
        }
        ids = tuple(record.id for record in records)
        for passage_id, passage in zip(ids, passages, strict=True):
            at = passage.at if self._dated[passage_id] else None
            self.found[passage_id] = replace(passage, at=at)
        request = asked(state.request, state.text)
        self._last = CandidateList(("", ""), self._pool, request, ids, scores)
        return state


def _speakers(passages: tuple[Passage, ...]) -> set[str]:
    return {passage.speaker.casefold() for passage in passages} - {""}


# The file of candidates: written once, read again when it fits, refused when it does not.
#
# JSON Lines, a line for each set: what the candidates were made from, the passages, the lists.

FORMAT = "ekphory-candidates-2"

_REMEDY = "Give another file, or delete this one to have it made anew."


def candidates_of(
    dataset: Dataset,
    *,
    embedder: EmbeddingModel,
    top: int = TOP,
    file: Path | None = None,
    progress: Progress = silent,
) -> CandidateSet:
    """Read the candidates of a set, or find them and add them to the file.

    Args:
        dataset: The questions and the pools.
        embedder: Embedder of the first stage.
        top: How many candidates each question has.
        file: Where they are kept, with those of other sets; None keeps them nowhere.
        progress: Is told how far the search is.

    Raises:
        DatasetError: The file has candidates of this set that were made from other data, by
            another first stage, or in another number; or it is malformed.
    """
    wanted = candidate_identity(dataset, embedder, top=top)
    known = read_candidate_sets(file) if file is not None and file.exists() else {}
    held = known.get(dataset.name)
    if held is not None:
        _check_fit(file, held.identity, wanted)
        return held
    found = find_candidates(dataset, embedder=embedder, top=top, progress=progress)
    if file is not None:
        write_candidate_sets([*known.values(), found], file)
    return found


def write_candidate_sets(sets: Iterable[CandidateSet], file: Path) -> None:
    """Write all sets; a file of that name is replaced at once or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.part")
    with unfinished.open("w", encoding="utf-8", newline="\n") as stream:
        for each in sets:
            row = {"format": FORMAT, "version": __version__, **asdict(each)}
            # ASCII escapes keep lone surrogates of the data writable.
            stream.write(json.dumps(row, default=datetime.isoformat) + "\n")
    unfinished.replace(file)


def read_candidate_sets(file: Path) -> dict[str, CandidateSet]:
    """Read all sets of a file, by name.

    Raises:
        DatasetError: It is no such file, or is cut short.
    """
    sets: dict[str, CandidateSet] = {}
    for row in read_json_lines(file):
        if row.fields.get("format") != FORMAT:
            raise DatasetError(f"{row.place}: no candidates of format {FORMAT!r}. {_REMEDY}")
        try:
            found = _read_set(row.fields)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DatasetError(
                f"{row.place}: not a set of candidates ({type(error).__name__}: {error}). {_REMEDY}"
            ) from error
        sets[found.identity.dataset] = found
    return sets


def _check_fit(file: Path | None, held: CandidateIdentity, wanted: CandidateIdentity) -> None:
    for each in fields(CandidateIdentity):
        made, given = getattr(held, each.name), getattr(wanted, each.name)
        if made != given:
            raise DatasetError(
                f"{file}: the candidates of {held.dataset} were made with another "
                f"{each.name.replace('_', ' ')}: {made}, now it is {given}. {_REMEDY}"
            )


def _read_set(row: Mapping[str, Any]) -> CandidateSet:
    return CandidateSet(
        CandidateIdentity(**row["identity"]),
        {
            pool: {
                passage_id: RerankPassage(**each | {"at": _read_moment(each["at"])})
                for passage_id, each in passages.items()
            }
            for pool, passages in row["passages"].items()
        },
        own=tuple(map(_read_list, row["own"])),
        elsewhere=tuple(map(_read_list, row["elsewhere"])),
    )


def _read_list(row: Mapping[str, Any]) -> CandidateList:
    asked = row["asked"]
    pool, query_id = row["key"]
    return CandidateList(
        (pool, query_id),
        row["searched"],
        RerankQuery(asked["text"], now=_read_moment(asked["now"])),
        tuple(row["ids"]),
        {name: tuple(row["scores"][name]) for name in FIRST_STAGE_SCORES},
    )


def _read_moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
