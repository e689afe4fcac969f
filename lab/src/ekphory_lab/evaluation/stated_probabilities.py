"""Whether the best hit's probability is true: statements that were written for it, and benchmarks.

The statements are of a hundred persons, with ten questions each that their memories answer and
three that they do not; nothing is fitted on them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from ekphory.errors import DatasetError
from ekphory.memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.reranker import RerankingModel
from ekphory_lab.evaluation import loaders
from ekphory_lab.evaluation.datasets import Dataset
from ekphory_lab.evaluation.metrics import best_hit_error
from ekphory_lab.evaluation.reranking.benchmark import ReliabilityBin, reliability_bins
from ekphory_lab.evaluation.runner import Progress
from ekphory_lab.evaluation.systems import newest_moment, passage_fields

STATEMENTS = Path(__file__).parent / "statements"
EMPTY_BELOW = 0.2
POOLED_BELOW = 300
"""Sets with fewer questions are measured together."""
POOLED = "smaller sets"


@dataclass(frozen=True, slots=True)
class AskedScope:
    """What is written into one scope, and what is asked of it.

    Attributes:
        kind: What its memories are, such as `statements`.
        passages: As `Memory.add_many` takes them.
        questions: The ids of the memories that answer each; none where nothing does.
        now: When they are asked; None for the present.
    """

    kind: str
    passages: Sequence[Mapping[str, Any]]
    questions: Mapping[str, frozenset[str]]
    now: datetime | None = None

    @contextmanager
    def written(
        self, *, embedder: EmbeddingModel | None = None, reranker: RerankingModel | None = None
    ) -> Iterator[Memory]:
        """Open a new store of the passages, compared; by default with the bundled models."""
        with (
            tempfile.TemporaryDirectory() as place,
            Memory(place, embedder=embedder, reranker=reranker) as memory,
        ):
            memory.add_many(self.passages)
            memory.settle()
            yield memory


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedProbabilities:
    """What the best hits of one set said, and how often they were right.

    Attributes:
        name, preset: Of what.
        questions: How many that the scope answers.
        said, right: Means over these.
        error: See `best_hit_error`.
        empty: Share of these whose best hit is below `EMPTY_BELOW`.
        unanswered, unanswered_empty: The same of the questions that the scope does not answer.
        bins: Best hits of like probability, of the questions that the scope answers.
    """

    name: str
    preset: str
    questions: int
    said: float
    right: float
    error: float
    empty: float
    unanswered: int
    unanswered_empty: float | None
    bins: tuple[ReliabilityBin, ...]


Row = tuple[float, bool, bool]
"""What was said of the best hit, whether it is right, and whether the scope has an answer."""


def statement_scopes() -> Iterator[AskedScope]:
    """Yield the persons' memories with their questions."""
    for path in sorted(STATEMENTS.glob("*.json")):
        for person in json.loads(path.read_text(encoding="utf-8")):
            yield AskedScope(
                "statements",
                [
                    {"id": str(place), "text": memory["text"], "at": memory["time"]}
                    for place, memory in enumerate(person["memories"])
                ],
                {
                    asked["text"]: frozenset(str(place) for place in asked["answers"])
                    for asked in person["questions"]
                },
            )


def known_sets(folder: Path) -> dict[str, Dataset]:
    """Load what the folder holds of LoCoMo, SciFact, 2Wiki and sets in the conversation form.

    Raises:
        DatasetError: There is none, or one is malformed.
    """
    found: dict[str, Dataset] = {}
    for place in sorted(each for each in folder.iterdir() if each.is_dir()):
        if (place / "locomo.json").is_file():
            found[place.name] = loaders.load_locomo(place / "locomo.json")
        elif (place / "qrels" / "test.tsv").is_file():
            found[place.name] = loaders.load_retrieval(place)
        elif (place / "qrels.tsv").is_file():
            is_multihop = "2wiki" in place.name
            load = loaders.load_multihop if is_multihop else loaders.load_conversation
            found[place.name] = load(place)
    if not found:
        raise DatasetError(f"{folder}: holds no benchmark. Give the folder that holds theirs.")
    return found


def dataset_scopes(dataset: Dataset, *, kind: str = "") -> Iterator[AskedScope]:
    """Yield the pools of a benchmark, asked at their newest moment, or when the set says."""
    for pool, passages in dataset.pools.items():
        asked = [query for query in dataset.queries if query.pool == pool]
        moments = {query.at for query in asked if query.at is not None}
        yield AskedScope(
            kind,
            [passage_fields(passage) for passage in passages],
            {
                query.text: frozenset(n for n, gain in dataset.qrels[query.key].items() if gain > 0)
                for query in asked
            },
            max(moments) if moments else newest_moment(passages),
        )


def measure_probabilities(
    sets: Mapping[str, Sequence[AskedScope]], *, presets: Sequence[str], progress: Progress
) -> list[StatedProbabilities]:
    """Ask every question with every preset, and compare what is said with what is right.

    Lists that time orders are left out: what is asked for there is not one memory.

    Args:
        sets: By name.
        presets: Of the searches.
        progress: Told the set, how many of its scopes are done, and of how many.
    """
    rows: dict[tuple[str, str], list[Row]] = {}
    for name, scopes in sets.items():
        for done, scope in enumerate(scopes):
            progress(name, done, len(scopes))
            with scope.written() as memory:
                found = {preset: list(_rows(memory, scope, preset)) for preset in presets}
            for preset, each in found.items():
                rows.setdefault((name, preset), []).extend(each)
        progress(name, len(scopes), len(scopes))
    return [_stated(*key, each) for key, each in _pooled(rows).items()]


def _rows(memory: Memory, scope: AskedScope, preset: str) -> Iterator[Row]:
    for query, answers in scope.questions.items():
        result = memory.search(query, k=1, now=scope.now, preset=preset)
        if result.hits and result.order == "score":
            best = result.hits[0]
            yield best.score, best.id in answers, bool(answers)


def _pooled(rows: Mapping[tuple[str, str], list[Row]]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for (name, preset), each in rows.items():
        is_small = sum(is_answered for _, _, is_answered in each) < POOLED_BELOW
        found.setdefault((POOLED if is_small else name, preset), []).extend(each)
    return found


def _stated(name: str, preset: str, rows: Sequence[Row]) -> StatedProbabilities:
    table = np.array(rows, np.float64).reshape(-1, 3)
    said, right, is_answered = table[:, 0], table[:, 1], table[:, 2] > 0
    others = said[~is_answered]
    return StatedProbabilities(
        name=name,
        preset=preset,
        questions=int(is_answered.sum()),
        said=float(said[is_answered].mean()),
        right=float(right[is_answered].mean()),
        error=best_hit_error(said[is_answered], right[is_answered]),
        empty=float((said[is_answered] < EMPTY_BELOW).mean()),
        unanswered=len(others),
        unanswered_empty=float((others < EMPTY_BELOW).mean()) if len(others) else None,
        bins=reliability_bins(said[is_answered], right[is_answered]),
    )
