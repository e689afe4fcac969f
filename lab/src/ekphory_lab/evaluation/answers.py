"""Whether a chat model answers right from the memories that a search gives it.

Without one the best memory stands as the answer.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from importlib.resources import files
from time import perf_counter
from typing import Any, TypeVar

from ekphory import __version__
from ekphory.agent_trace import ModelAnswered, RetrievalTrace
from ekphory.errors import DatasetError, InvalidInput, ServiceError
from ekphory.http_service import ServiceRefusal, ServiceUnavailable
from ekphory.models.chat import ChatMessage, ChatOptions, ChatUsage, OpenAIChat
from ekphory.prompting.block import escape_text
from ekphory.retrieval.pipeline import OptionalModels
from ekphory.retrieval.presets import preset
from ekphory.retrieval.stages.widen import ExpandQuery, Hyde
from ekphory.search import SearchResult
from ekphory_lab.evaluation import runner, tables
from ekphory_lab.evaluation.commands import group_table
from ekphory_lab.evaluation.datasets import Dataset, EvaluationQuery
from ekphory_lab.evaluation.options import AnswerOptions
from ekphory_lab.evaluation.systems import EkphorySystem, OtherSearch, newest_moment

# Exact match and F1 as SQuAD has them (Rajpurkar, Zhang, Lopyrev and Liang, "SQuAD: 100,000+
# Questions for Machine Comprehension of Text", EMNLP 2016): over words in lower case, without
# punctuation and articles. Of several reference answers the one that fits best counts.

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> list[str]:
    """Return the words that count: in lower case, without ASCII punctuation and articles."""
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def exact_match(answer: str, references: Sequence[str]) -> float:
    """Return 1 where the words are those of a reference answer, else 0."""
    return float(normalize_answer(answer) in map(normalize_answer, references))


def token_f1(answer: str, references: Sequence[str]) -> float:
    """Return the harmonic mean of the words' precision and recall, for the best reference."""
    return max(_f1(normalize_answer(answer), normalize_answer(each)) for each in references)


def _f1(answer: Sequence[str], reference: Sequence[str]) -> float:
    if not answer or not reference:
        return float(answer == reference)
    shared = (Counter(answer) & Counter(reference)).total()
    return 2 * shared / (len(answer) + len(reference))


# What the model is asked.

_PROMPTS: Mapping[str, str] = tomllib.loads(
    files(__package__).joinpath("answer_prompts.toml").read_text("utf-8")
)
_VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {"right": {"type": "boolean"}},
    "required": ["right"],
    "additionalProperties": False,
}
# Long enough for a model that thinks aloud before it answers.
_OPTIONS = ChatOptions(max_tokens=2_000, temperature=0.0)


def _answer(chat: OpenAIChat, query: EvaluationQuery, context: str) -> str:
    asked = f" (asked on {query.at:%d %B %Y})" if query.at else ""
    content = f"{context}\n\nQuestion{asked}: {query.text}"
    messages = [ChatMessage("system", _PROMPTS["answer"]), ChatMessage("user", content)]
    return chat.complete(messages, options=_OPTIONS)


def _judge(chat: OpenAIChat, query: EvaluationQuery, answer: str) -> bool:
    parts = [
        ("question", query.text),
        *(("reference", each) for each in query.answers),
        ("answer", answer),
    ]
    content = "\n".join(f"<{name}>{escape_text(text)}</{name}>" for name, text in parts)
    messages = [ChatMessage("system", _PROMPTS["judge"]), ChatMessage("user", content)]
    return bool(chat.complete_json(messages, _VERDICT, options=_OPTIONS)["right"])


# What it costs.

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a step cost: requests to models that were answered, their tokens, and time."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    milliseconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        sums = {name: value + getattr(other, name) for name, value in asdict(self).items()}
        return Cost(**sums)


def _measure(chat: OpenAIChat | None, run: Callable[[], _Found]) -> tuple[_Found, Cost]:
    """Return what a step gave, and what it cost."""
    before, started = chat.usage if chat else ChatUsage(), perf_counter()
    found = run()
    milliseconds = (perf_counter() - started) * 1_000
    after = chat.usage if chat else before
    return found, Cost(
        after.answers - before.answers,
        after.prompt_tokens - before.prompt_tokens,
        after.completion_tokens - before.completion_tokens,
        milliseconds,
    )


def _attempt(ask: Callable[[], _Found]) -> tuple[_Found | None, str]:
    """Return what the model said, or why there is nothing.

    Raises:
        ServiceError: The service cannot be used. Only what is wrong with one answer is returned:
            it was refused, cut off, empty or not in the form that was asked for.
    """
    try:
        return ask(), ""
    except (ServiceUnavailable, ServiceRefusal):
        raise
    except ServiceError as error:
        return None, str(error)


def _agent_cost(trace: RetrievalTrace | None) -> Cost:
    """Return what the retrieval agent's own model cost beside its time, which the search has."""
    if trace is None:
        return Cost()
    turns = [each.body for each in trace.events if isinstance(each.body, ModelAnswered)]
    return Cost(
        len(turns),
        sum(turn.input_tokens for turn in turns),
        sum(turn.output_tokens for turn in turns),
    )


# Asking the questions of a set.

EXACT, F1, JUDGED = "exact match", "F1", "judged right"
READ, WRITTEN = "tokens read", "tokens written"
BEST_MEMORY = "the best memory"
"""What stands in the place of an answering model's name where none answers."""


CONTEXT_TOKENS = 4_000
"""Most tokens of the block of memories in a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOutcome:
    """What one question gave.

    Attributes:
        query: The question.
        answer: The model's answer; empty where it gave none.
        right: What the judge said; None where none was asked. A question without an answer or a
            verdict counts as wrong.
        searching, answering, judging: What each step cost.
        failure: Why there is no answer or no verdict; empty where there is.
    """

    query: EvaluationQuery
    answer: str
    right: bool | None
    searching: Cost
    answering: Cost
    judging: Cost
    failure: str

    @property
    def scores(self) -> Mapping[str, float]:
        """Value by measure; calls, tokens and seconds are those of search and answer."""
        spent = self.searching + self.answering
        references = self.query.answers
        judged = {} if self.right is None else {JUDGED: float(self.right)}
        return {
            EXACT: exact_match(self.answer, references),
            F1: token_f1(self.answer, references),
            **judged,
            "calls": spent.calls,
            READ: spent.prompt_tokens,
            WRITTEN: spent.completion_tokens,
            "seconds": spent.milliseconds / 1_000,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReport:
    """The answers to the questions of a set.

    Attributes:
        system: Who searched.
        configuration: Everything that decides the answers.
        dataset: The set, with the questions that were asked.
        outcomes: What each question gave.
    """

    system: str
    configuration: Mapping[str, runner.Setting]
    dataset: Dataset
    outcomes: tuple[AnswerOutcome, ...]


def models_of_store(models: OptionalModels, named: str | None) -> OptionalModels:
    """Return the models without the chat model where the preset does not ask it in a search.

    A store that has one asks it too about memories that may contradict each other, while it is
    written: requests that no question is to be charged with.
    """
    stages = preset(named).stages
    asked = any(isinstance(stage, Hyde | ExpandQuery) for stage in stages)
    return models if asked else replace(models, chat=None)


def answer_questions(
    dataset: Dataset,
    system: EkphorySystem | OtherSearch,
    asked: AnswerOptions,
    *,
    chat: OpenAIChat | None,
    progress: runner.Progress = runner.silent,
) -> AnswerReport:
    """Search for each question, have it answered from what was found, and compare the answers.

    A pool is written when its first question comes up, and that time is not counted.

    Args:
        dataset: The set; its questions without a reference answer are left out.
        system: The store that is searched, and how.
        asked: Which questions, and whether the answers are judged.
        chat: The model that answers, and judges; None takes the text of the best memory as the
            answer.
        progress: Is told after each question.

    Raises:
        DatasetError: No question has a reference answer.
        InvalidInput: Nothing would be asked, or there is no model to judge the answers.
        ServiceError: The chat service cannot be used.
    """
    asked.check()
    if chat is None and asked.judge:
        raise InvalidInput(
            "judge",
            True,
            "a chat service judges the answers, and none is configured",
            "Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL.",
        )
    chosen = _choose_questions(dataset, asked.limit)
    judge = chat if asked.judge else None
    outcomes = []
    for done, query in enumerate(chosen.queries, start=1):
        passages = chosen.pools[query.pool]
        search = partial(system.searcher(query.pool, passages), query, asked.depth)
        now = query.at or newest_moment(passages)
        outcomes.append(_answer_question(query, search, now, chat, judge))
        progress("answer", done, len(chosen.queries))
    configuration: dict[str, runner.Setting] = {
        **system.configuration,
        "chat": chat.name if chat else BEST_MEMORY,
        "judge": judge.name if judge else None,
        "depth": asked.depth,
        "context_tokens": CONTEXT_TOKENS,
    }
    return AnswerReport(
        system=system.name, configuration=configuration, dataset=chosen, outcomes=tuple(outcomes)
    )


def _choose_questions(dataset: Dataset, limit: int | None) -> Dataset:
    """Keep the questions with a reference answer, or as many of them evenly spread."""
    answered = [query for query in dataset.queries if query.answers]
    if not answered:
        raise DatasetError(
            f"{dataset.name}: no question has a reference answer. Give `answer` in queries.jsonl, "
            "or a file as the set's authors publish it."
        )
    asked = min(limit or len(answered), len(answered))
    queries = tuple(answered[place * len(answered) // asked] for place in range(asked))
    return replace(
        dataset, queries=queries, qrels={query.key: dataset.qrels[query.key] for query in queries}
    )


def _answer_question(
    query: EvaluationQuery,
    search: Callable[[], SearchResult],
    now: datetime | None,
    chat: OpenAIChat | None,
    judge: OpenAIChat | None,
) -> AnswerOutcome:
    result, searching = _measure(chat, search)
    answer, failure, answering = result[0].text if result else "", "", Cost()
    if chat is not None:
        context = result.answer_context(CONTEXT_TOKENS, now=now)
        (given, failure), answering = _measure(
            chat, partial(_attempt, partial(_answer, chat, query, context))
        )
        answer = given or ""
    right: bool | None = None
    judging = Cost()
    if judge is not None and not failure:
        (right, failure), judging = _measure(
            judge, partial(_attempt, partial(_judge, judge, query, answer))
        )
    return AnswerOutcome(
        query=query,
        answer=answer,
        right=None if judge is None else bool(right),
        searching=searching + _agent_cost(result.retrieval_trace),
        answering=answering,
        judging=judging,
        failure=failure,
    )


# The report.


def answers_json(report: AnswerReport) -> dict[str, object]:
    """Return the whole report for JSON."""
    return {
        "system": report.system,
        "version": __version__,
        "configuration": report.configuration,
        "dataset": runner.dataset_json(report.dataset),
        "overall": runner.score_group(report.outcomes),
        "categories": runner.score_categories(report.outcomes),
        "questions": [
            {
                "pool": outcome.query.pool,
                "id": outcome.query.id,
                "category": outcome.query.category,
                "text": outcome.query.text,
                "references": outcome.query.answers,
                "answer": outcome.answer,
                "right": outcome.right,
                "failure": outcome.failure,
                "scores": outcome.scores,
                "searching": outcome.searching,
                "answering": outcome.answering,
                "judging": outcome.judging,
            }
            for outcome in report.outcomes
        ],
    }


def answers_table(report: AnswerReport) -> tables.ReportTable:
    """Show a line per category, and one overall with 95 % confidence intervals."""
    overall = runner.score_group(report.outcomes)
    dataset, chat = report.dataset, report.configuration["chat"]
    return group_table(
        f"{report.system} and {chat} on {dataset.name}: {len(dataset.queries)} questions, "
        f"{dataset.size:,} passages in {len(dataset.pools)} pools; {dataset.source.licence}",
        {**runner.score_categories(report.outcomes), "overall": overall},
        list(overall.scores),
        note="Calls, tokens and seconds are a question's mean, of search and answer together.",
    )


def answers_lines(report: AnswerReport) -> Iterator[str]:
    """Say what the judge cost, and how many questions got no answer or no verdict."""
    judge = report.configuration["judge"]
    if judge is not None:
        spent = sum((outcome.judging for outcome in report.outcomes), start=Cost())
        yield (
            f"judge {judge}: {spent.calls} calls, {spent.prompt_tokens:,} tokens read, "
            f"{spent.completion_tokens:,} written, {spent.milliseconds / 1_000:.1f} s"
        )
    failures = [outcome.failure for outcome in report.outcomes if outcome.failure]
    if failures:
        yield f"{len(failures)} without an answer or a verdict count as wrong: {failures[0]}"
