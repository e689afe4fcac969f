"""Fits how sure the local agent is of a link, on generated stories."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.agent.budget import Budget
from recollect.agent.local.confidence import LinkCurve, LinkFeatures
from recollect.agent.local.following import Follower
from recollect.agent.local.leads import without_brackets
from recollect.agent.question.reading import read_question
from recollect.agent.question.words import meaning_words
from recollect.agent.search_tool import SearchTool
from recollect.agent_trace.event_log import EventLog
from recollect.evaluation.calibration import expected_calibration_error
from recollect.memory import Memory
from recollect.training.agent.stories import ChainQuestion, make_story

_CALLS = 10
_SECONDS = 60.0
_HITS = 20
_ROUNDS = 50
_RIDGE = 1e-2

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Judged:
    """A link that was made, and whether it was right."""

    features: LinkFeatures
    is_right: bool
    is_last: bool


@dataclass(frozen=True, slots=True)
class LinkFit:
    """What was fitted, and how well it holds on stories that it was not fitted on.

    Attributes:
        links, evidence: The curves.
        links_error, evidence_error: Their expected calibration errors.
        links_right, evidence_right: How many of the likeliest threads' links were right.
        observations: How many links were looked at.
    """

    links: LinkCurve
    evidence: LinkCurve
    links_error: float
    evidence_error: float
    links_right: float
    evidence_right: float
    observations: int


def fit_links(*, stories: int = 40, seed: int = 1) -> LinkFit:
    """Fit on the first four fifths of the stories, and measure on the others."""
    judged = [list(_story_links(seed + number)) for number in range(stories)]
    cut = max(1, stories * 4 // 5)
    fitted = [each for part in judged[:cut] for each in part]
    held_out = [each for part in judged[cut:] for each in part] or fitted
    links = _curve([each for each in fitted if not each.is_last])
    evidence = _curve([each for each in fitted if each.is_last])
    of_links = [each for each in held_out if not each.is_last]
    of_evidence = [each for each in held_out if each.is_last]
    return LinkFit(
        links,
        evidence,
        _error(links, of_links),
        _error(evidence, of_evidence),
        _share_right(of_links),
        _share_right(of_evidence),
        len(fitted) + len(held_out),
    )


def _story_links(seed: int) -> Iterator[Judged]:
    story = make_story(seed)
    with (
        tempfile.TemporaryDirectory(prefix="recollect-stories-") as directory,
        Memory(Path(directory) / "story") as memory,
    ):
        memory.add_many({"id": name, "text": text} for name, text in story.memories.items())
        for question in story.questions:
            yield from _question_links(memory, question)


def _question_links(memory: Memory, question: ChainQuestion) -> Iterator[Judged]:
    reading = read_question(question.text)
    if reading.kind != "chain":
        return
    budget = Budget(most_calls=_CALLS, seconds=_SECONDS)
    tool = SearchTool(lambda query: memory.search(query, k=_HITS).hits, budget, EventLog())
    first = tool(question.text)
    known = meaning_words(without_brackets(question.text))
    follower = Follower(reading.branches[0], tool, first, known, budget.calls_left)
    follower.follow()
    for thread in follower.ended:
        for place, link in enumerate(thread.links):
            features = LinkFeatures(link.score, link.margin, link.support)
            if link.answer:
                wanted = question.names[place] if place < len(question.names) else ""
                yield Judged(features, meaning_words(link.answer) == meaning_words(wanted), False)
            else:
                yield Judged(features, link.hit.id == question.memories[-1], True)


def _curve(judged: list[Judged]) -> LinkCurve:
    """Fit by Newton's method with a small ridge (logistic regression)."""
    inputs = np.array([_inputs(each.features) for each in judged])
    right = np.array([each.is_right for each in judged], np.float64)
    weights = np.zeros(inputs.shape[1])
    ridge = _RIDGE * np.eye(inputs.shape[1])
    for _ in range(_ROUNDS):
        said = 1 / (1 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (said - right) + ridge @ weights
        curvature = (inputs * (said * (1 - said))[:, None]).T @ inputs + ridge
        weights -= np.linalg.solve(curvature, gradient)
    return LinkCurve(*(round(float(weight), 3) for weight in weights))


def _inputs(features: LinkFeatures) -> list[float]:
    """Give the terms that `LinkCurve.probability` adds up, each with weight 1."""
    return [1.0, features.fit_term, features.margin_term, features.support]


def _error(curve: LinkCurve, judged: list[Judged]) -> float:
    said = np.array([curve.probability(each.features) for each in judged])
    right = np.array([each.is_right for each in judged])
    return expected_calibration_error(said, right)


def _share_right(judged: list[Judged]) -> float:
    return float(np.mean([each.is_right for each in judged]))
