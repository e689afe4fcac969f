"""The file of candidates: written once, read again when it fits, refused when it does not.

JSON Lines. For each set a line of kind `set` with what the candidates were made from, then its
`passage` lines, then its `list` lines, one for each search.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from itertools import chain
from pathlib import Path

from ekphory import __version__
from ekphory.errors import DatasetError
from ekphory.evaluation.datasets import Dataset
from ekphory.evaluation.reranking.candidates import (
    FIRST_STAGE_SCORES,
    CandidateIdentity,
    CandidateList,
    CandidateSet,
)
from ekphory.evaluation.reranking.first_stage import TOP, candidate_identity, find_candidates
from ekphory.evaluation.rows import Row, read_json_lines
from ekphory.evaluation.runner import Progress, silent
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.types import MEMORY_TYPES

FORMAT = "ekphory-candidates-1"

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
        for row in chain.from_iterable(map(_rows, sets)):
            # ASCII escapes keep lone surrogates of the data writable.
            stream.write(json.dumps(row) + "\n")
    unfinished.replace(file)


def read_candidate_sets(file: Path) -> dict[str, CandidateSet]:
    """Read all sets of a file, by name.

    Raises:
        DatasetError: It is no such file, or is cut short.
    """
    sets: dict[str, CandidateSet] = {}
    rows = read_json_lines(file)
    for row in rows:
        if row.fields.get("kind") != "set" or row.fields.get("format") != FORMAT:
            raise DatasetError(f"{row.place}: no candidates of format {FORMAT!r}. {_REMEDY}")
        found = _set(row, rows)
        sets[found.identity.dataset] = found
    return sets


def _check_fit(file: Path | None, held: CandidateIdentity, wanted: CandidateIdentity) -> None:
    for field in fields(CandidateIdentity):
        made, given = getattr(held, field.name), getattr(wanted, field.name)
        if made != given:
            raise DatasetError(
                f"{file}: the candidates of {held.dataset} were made with another "
                f"{field.name.replace('_', ' ')}: {made}, now it is {given}. {_REMEDY}"
            )


def _rows(candidates: CandidateSet) -> Iterator[dict[str, object]]:
    passages = [
        (pool, passage_id, passage)
        for pool, by_id in candidates.passages.items()
        for passage_id, passage in by_id.items()
    ]
    lists = [*candidates.own, *candidates.elsewhere]
    yield {
        "kind": "set",
        "format": FORMAT,
        "version": __version__,
        **asdict(candidates.identity),
        "passages": len(passages),
        "lists": len(lists),
    }
    for pool, passage_id, passage in passages:
        yield _without_none(
            kind="passage",
            pool=pool,
            id=passage_id,
            text=passage.text,
            before=passage.before,
            after=passage.after,
            at=None if passage.at is None else passage.at.isoformat(),
            type=passage.type,
        )
    for found in lists:
        pool, query_id = found.key
        yield _without_none(
            kind="list",
            pool=pool,
            id=query_id,
            searched=found.searched,
            text=found.asked.text,
            now=None if found.asked.now is None else found.asked.now.isoformat(),
            ids=list(found.ids),
            scores={name: list(values) for name, values in found.scores.items()},
        )


def _without_none(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _set(head: Row, rows: Iterator[Row]) -> CandidateSet:
    passages: dict[str, dict[str, RerankPassage]] = {}
    for row in _next(head, rows, "passage", _count(head, "passages")):
        passages.setdefault(row.text("pool"), {})[row.text("id")] = _passage(row)
    lists = [_list(row, passages) for row in _next(head, rows, "list", _count(head, "lists"))]
    return CandidateSet(
        CandidateIdentity(
            dataset=head.text("dataset"),
            data=head.text("data"),
            queries=_count(head, "queries"),
            embedder=head.text("embedder"),
            first_stage=head.text("first_stage"),
            top=_count(head, "top"),
        ),
        passages,
        own=tuple(found for found in lists if found.searched == found.key[0]),
        elsewhere=tuple(found for found in lists if found.searched != found.key[0]),
    )


def _next(head: Row, rows: Iterator[Row], kind: str, count: int) -> Iterator[Row]:
    for _ in range(count):
        row = next(rows, None)
        if row is None or row.fields.get("kind") != kind:
            place = head.place if row is None else row.place
            raise DatasetError(
                f"{place}: the set {head.text('dataset')} lacks one of its {count} lines of kind "
                f"{kind!r}: the file is cut short. {_REMEDY}"
            )
        yield row


def _count(row: Row, name: str) -> int:
    value = row.integer(name)
    if value is None or value < 0:
        raise row.error(name, "a number of 0 or more is needed here")
    return value


def _passage(row: Row) -> RerankPassage:
    given = row.fields.get("type")
    return RerankPassage(
        row.text("text"),
        before=None if row.fields.get("before") is None else row.text("before"),
        after=None if row.fields.get("after") is None else row.text("after"),
        at=row.moment("at"),
        type=next((name for name in MEMORY_TYPES if name == given), None),
    )


def _list(row: Row, passages: dict[str, dict[str, RerankPassage]]) -> CandidateList:
    searched, ids = row.text("searched"), row.texts("ids")
    if not passages.get(searched, {}).keys() >= set(ids):
        raise row.error("ids", f"names a passage that pool {searched!r} lacks")
    scores = row.fields.get("scores")
    if not isinstance(scores, dict) or not all(
        _are_numbers(scores.get(name), count=len(ids)) for name in FIRST_STAGE_SCORES
    ):
        raise row.error("scores", "a number for every passage is needed here")
    asked = RerankQuery(row.text("text"), now=row.moment("now"))
    kept = {name: tuple(map(float, scores[name])) for name in FIRST_STAGE_SCORES}
    return CandidateList((row.text("pool"), row.text("id")), searched, asked, ids, kept)


def _are_numbers(values: object, *, count: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) == count
        and all(isinstance(value, int | float) for value in values)
    )
