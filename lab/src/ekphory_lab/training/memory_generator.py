"""Samples of a query, its memory and hard negatives: the same ones for the same seed."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ekphory.errors import InvalidInput
from ekphory.types import MemoryType
from ekphory_lab.evaluation.agentmem_cases import (
    Candidate,
    CaseSet,
    Distractor,
    LabelledText,
    RankingCase,
)
from ekphory_lab.training.memories import (
    NEGATIVE_KINDS,
    NEGATIVES,
    GeneratedMemory,
    HardNegative,
    Kind,
    MemorySample,
    NegativeKind,
    Queries,
    Situation,
    Split,
    Stress,
    Template,
    Templates,
    TimePhrase,
    Vocabulary,
    Wording,
    bucket_of,
    draw_age,
    draw_age_inside,
    draw_age_outside,
    draw_older_age,
    draw_situation,
    draw_wording,
    opposite,
    phrase_for,
    stressed,
    templates,
    vocabulary,
    with_other_details,
    with_other_numbers,
    with_other_person,
    with_other_place,
    with_other_topic,
)

# Draws what a sample asks: for which kind of memory, in which words, about which time.

Aim = Literal["kind", "type", "importance", "denial"]

# Of the positive memories: episodic, semantic and procedural ones.
_TYPES: tuple[MemoryType, ...] = ("episodic", "semantic", "procedural")
_TYPE_WEIGHTS = (40, 35, 25)
_TIMED_SHARE = 0.6
_NUMBERED_SHARE = 0.55
_MINE_SHARE = 0.25
_TYPE_SHARE = 0.12
_IMPORTANCE_SHARE = 0.3
_DENIAL_SHARE = 0.08
IMPORTANT = 0.75
"""From this importance on, a kind answers a query for what is important."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a sample asks.

    Attributes:
        kind: The kind of memory that answers.
        aim: What the words ask for: that kind, its type, what is important, or what is no longer
            so.
        template: The query's words.
        mine: Whether the user asks about herself.
        days_ago: The age of the answer.
        time: What it means by the time it names; None where it names none.
        when: The words for that time, empty or with a space before them.
    """

    kind: Kind
    aim: Aim
    template: Template
    mine: bool
    days_ago: float
    time: TimePhrase | None
    when: str

    def text(self, situation: Situation) -> str:
        """Ask about that situation."""
        return _ask(self.template, situation, self.when)

    def text_without_time(self, situation: Situation) -> str:
        """Ask about that situation, naming no time."""
        return _ask(self.template, situation, "")


def draw_question(source: random.Random, wordings: Templates) -> Question:
    """Draw a question; its answer's age is spread evenly over the buckets."""
    type_ = source.choices(_TYPES, _TYPE_WEIGHTS)[0]
    kinds = wordings.kinds[type_]
    kind = source.choices(kinds, [each.weight for each in kinds])[0]
    aim = _draw_aim(source, kind)
    days_ago = draw_age(source)
    time = phrase_for(source, wordings.times, days_ago) if _chance(source, _TIMED_SHARE) else None
    mine = _chance(source, _MINE_SHARE)
    queries = _queries_for(kind, aim, wordings)
    template = _draw_template(source, queries.mine if mine else queries.named, time)
    if "when" not in template.slots:
        time = None
    when = "" if time is None else f" {source.choice(time.words)}"
    return Question(kind, aim, template, mine, days_ago, time, when)


def _draw_aim(source: random.Random, kind: Kind) -> Aim:
    if _chance(source, _DENIAL_SHARE):
        return "denial"
    if kind.importance >= IMPORTANT and _chance(source, _IMPORTANCE_SHARE):
        return "importance"
    return "type" if _chance(source, _TYPE_SHARE) else "kind"


def _queries_for(kind: Kind, aim: Aim, wordings: Templates) -> Queries:
    if aim == "kind":
        return kind.queries
    if aim == "type":
        return wordings.generic[kind.type]
    return wordings.generic["important" if aim == "importance" else "denied"]


def _draw_template(
    source: random.Random, candidates: tuple[Template, ...], time: TimePhrase | None
) -> Template:
    if time is not None:
        candidates = tuple(each for each in candidates if "when" in each.slots) or candidates
    if _chance(source, _NUMBERED_SHARE):
        candidates = tuple(each for each in candidates if each.asked_numbers) or candidates
    return source.choice(candidates)


def _ask(template: Template, situation: Situation, when: str) -> str:
    text = template.text.format_map({**situation.slots, "when": when})
    return text[0].upper() + text[1:]


def _chance(source: random.Random, share: float) -> bool:
    return source.random() < share


# Makes the memories that resemble the answer and are none: one rule for each kind.

_RARE: tuple[NegativeKind, ...] = ("temporal", "number", "number")
_DETAILS = frozenset({"thing", "choice", "task", "event"})
_SAME_TIME_SHARE = 0.6
_SAME_WORDS_SHARE = 0.7
_UNIMPORTANT = 0.5
_ECHO_SHARE = 0.25
_CLAIMED_BY_NOBODY = 0.15
_NOTHING_ASKED: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with its answer, and what they were made of.

    Attributes:
        question: What is asked.
        situation: What question and answer are about.
        wording: How the answer is put.
        memory: The answer.
        words: The words of this half.
        templates: The wordings of this half.
    """

    question: Question
    situation: Situation
    wording: Wording
    memory: GeneratedMemory
    words: Vocabulary
    templates: Templates


def draw_negatives(source: random.Random, answer: Answer) -> tuple[HardNegative, ...]:
    """Draw `NEGATIVES` memories: one of each kind that the query allows, then more of these."""
    kinds = _possible(answer.question)
    # The kinds that few queries allow come more often where they can.
    more = (*kinds, *(kind for kind in _RARE if kind in kinds))
    taken = {(answer.memory.text, answer.memory.days_ago)}
    found: list[HardNegative] = []
    while len(found) < NEGATIVES:
        kind = kinds[len(found)] if len(found) < len(kinds) else source.choice(more)
        memory = _MAKERS[kind](source, answer)
        if kind != "temporal" and memory.text == answer.memory.text:
            continue
        if (memory.text, memory.days_ago) not in taken:
            taken.add((memory.text, memory.days_ago))
            found.append(HardNegative(kind, memory))
    return tuple(found)


def _possible(question: Question) -> tuple[NegativeKind, ...]:
    missing: set[NegativeKind] = set()
    if question.time is None:
        missing.add("temporal")
    if not question.template.asked_numbers:
        missing.add("number")
    return tuple(kind for kind in NEGATIVE_KINDS if kind not in missing)


def _temporal(source: random.Random, answer: Answer) -> GeneratedMemory:
    question = answer.question
    wording = answer.wording
    if source.random() > _SAME_WORDS_SHARE:
        wording = draw_wording(source, question.kind, question.template.asked, ())
        wording = opposite(source, wording) if question.aim == "denial" else wording
    days_ago = draw_age(source)
    if question.time is not None:
        days_ago = draw_age_outside(source, question.time)
    return wording.memory(answer.situation, days_ago)


def _type_confusion(source: random.Random, answer: Answer) -> GeneratedMemory:
    question = answer.question
    kinds = [kind for kind in _all_kinds(answer) if kind.type != question.kind.type]
    stresses = answer.templates.stresses
    if question.aim == "importance":
        kinds, stresses = _unimportant(kinds), _softening(stresses)
    kind = source.choice(kinds)
    asked = question.template.asked & _DETAILS
    wording = draw_wording(source, kind, asked, stresses)
    return wording.memory(answer.situation, _any_age(source, answer))


def _topic_drift(source: random.Random, answer: Answer) -> GeneratedMemory:
    situation = with_other_topic(source, answer.words, answer.situation)
    return answer.wording.memory(situation, _any_age(source, answer))


def _entity_confusion(source: random.Random, answer: Answer) -> GeneratedMemory:
    if "place" in answer.question.template.slots and source.random() < _SAME_WORDS_SHARE:
        situation = with_other_place(source, answer.words, answer.situation)
    else:
        situation = with_other_person(source, answer.words, answer.situation)
    return answer.wording.memory(situation, _any_age(source, answer))


def _negation(source: random.Random, answer: Answer) -> GeneratedMemory:
    days_ago = _any_age(source, answer)
    if answer.question.time is None:
        # Were it newer, the answer would be outdated.
        days_ago = draw_older_age(source, answer.memory.days_ago)
    return opposite(source, answer.wording).memory(answer.situation, days_ago)


def _number(source: random.Random, answer: Answer) -> GeneratedMemory:
    situation = with_other_numbers(source, answer.situation)
    return answer.wording.memory(situation, _any_age(source, answer))


def _near_duplicate(source: random.Random, answer: Answer) -> GeneratedMemory:
    if source.random() < _ECHO_SHARE:
        return _echo(source, answer)
    if answer.question.aim == "importance":
        return _triviality(source, answer)
    if answer.question.template.asked & _DETAILS and source.random() < 1 / 2:
        situation = with_other_details(source, answer.situation)
        return answer.wording.memory(situation, _any_age(source, answer))
    return _hearsay(source, answer)


def _triviality(source: random.Random, answer: Answer) -> GeneratedMemory:
    kind = source.choice(_unimportant(_all_kinds(answer)))
    wording = draw_wording(source, kind, _NOTHING_ASKED, ())
    wording = stressed(source, wording, _softening(answer.templates.stresses))
    return wording.memory(answer.situation, _any_age(source, answer))


def _echo(source: random.Random, answer: Answer) -> GeneratedMemory:
    question = answer.question
    ask = question.text if source.random() < 1 / 2 else question.text_without_time
    asker = source.choice(answer.words.people)
    text = source.choice(answer.templates.echoes).format(
        asker=asker, query=ask(answer.situation).rstrip("?") + "?"
    )
    return GeneratedMemory(text, _any_age(source, answer), "episodic", _CLAIMED_BY_NOBODY)


def _hearsay(source: random.Random, answer: Answer) -> GeneratedMemory:
    asker = source.choice(answer.words.people)
    text = source.choice(answer.templates.hearsays).format(asker=asker, text=answer.memory.text)
    return GeneratedMemory(text, _any_age(source, answer), answer.memory.type, _CLAIMED_BY_NOBODY)


def _any_age(source: random.Random, answer: Answer) -> float:
    time = answer.question.time
    if time is not None and source.random() < _SAME_TIME_SHARE:
        return draw_age_inside(source, time)
    return draw_age(source)


def _all_kinds(answer: Answer) -> list[Kind]:
    return [kind for kinds in answer.templates.kinds.values() for kind in kinds]


def _unimportant(kinds: list[Kind]) -> list[Kind]:
    return [kind for kind in kinds if kind.importance <= _UNIMPORTANT]


def _softening(stresses: tuple[Stress, ...]) -> tuple[Stress, ...]:
    return tuple(stress for stress in stresses if stress.change < 0)


_MAKERS: Mapping[NegativeKind, Callable[[random.Random, Answer], GeneratedMemory]] = {
    "temporal": _temporal,
    "type_confusion": _type_confusion,
    "topic_drift": _topic_drift,
    "entity_confusion": _entity_confusion,
    "negation": _negation,
    "number": _number,
    "near_duplicate": _near_duplicate,
}


# The generator: an endless supply of samples, the same ones for the same seed.

_SPLITS = ("train", "test")


def generate(split: Split, *, seed: int, count: int) -> Iterator[MemorySample]:
    """Generate samples one at a time.

    The halves share no template, no person, place or condition, and no word list of a topic. Of the
    answers 40 % are episodic, 35 % semantic, 25 % procedural; their ages are spread evenly over the
    ten buckets. More samples of one seed begin with the same ones.

    Args:
        split: Which half.
        seed: Other seeds give other samples.
        count: How many.

    Raises:
        InvalidInput: There is no such half, or `count` is negative.
    """
    if split not in _SPLITS:
        raise InvalidInput("split", split, "there is no such half", "Take train or test.")
    if count < 0:
        raise InvalidInput("count", count, "it is negative", "Give how many samples to make.")
    return _stream(random.Random(f"{split} {seed}"), split, count)  # noqa: S311  no secret


def _stream(source: random.Random, split: Split, count: int) -> Iterator[MemorySample]:
    words, wordings = vocabulary(split), templates(split)
    for _ in range(count):
        yield _sample(source, words, wordings)


def _sample(source: random.Random, words: Vocabulary, wordings: Templates) -> MemorySample:
    question = draw_question(source, wordings)
    situation = draw_situation(source, words, mine=question.mine)
    stresses: tuple[Stress, ...] = wordings.stresses
    if question.aim == "importance":
        stresses = tuple(stress for stress in stresses if stress.change > 0)
    wording = draw_wording(source, question.kind, question.template.asked, stresses)
    if question.aim == "denial":
        wording = opposite(source, wording)
    memory = wording.memory(situation, question.days_ago)
    answer = Answer(question, situation, wording, memory, words, wordings)
    return MemorySample(question.text(situation), memory, draw_negatives(source, answer))


# Writes samples to a JSON Lines file, and counts what it writes.

_STEP = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingReport:
    """What was written.

    Attributes:
        samples: How many samples.
        seconds: How long it took.
        types: Answers by type.
        buckets: Answers by bucket of their age, from 0 to 9.
        negatives: Hard negatives by kind.
    """

    samples: int
    seconds: float
    types: Mapping[str, int]
    buckets: Mapping[int, int]
    negatives: Mapping[str, int]


def write_samples(
    samples: Iterable[MemorySample], file: Path, *, progress: Callable[[int], None]
) -> WritingReport:
    """Write one JSON object a line; the file's folder is made if need be.

    Args:
        samples: What to write.
        file: Where to; replaced if it exists.
        progress: Is told now and then how many are written.
    """
    types: Counter[str] = Counter()
    buckets: Counter[int] = Counter()
    negatives: Counter[str] = Counter()
    started = time.perf_counter()
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as stream:
        for number, sample in enumerate(samples, start=1):
            stream.write(json.dumps(sample_row(sample)) + "\n")
            types[sample.positive.type] += 1
            buckets[bucket_of(sample.positive.days_ago)] += 1
            negatives.update(negative.kind for negative in sample.negatives)
            if number % _STEP == 0:
                progress(number)
    return WritingReport(
        samples=types.total(),
        seconds=round(time.perf_counter() - started, 3),
        types=dict(sorted(types.items())),
        buckets=dict(sorted(buckets.items())),
        negatives=dict(sorted(negatives.items())),
    )


def sample_row(sample: MemorySample) -> dict[str, object]:
    """Return a sample as values that JSON can hold."""
    return {
        "query": sample.query,
        "positive": _memory_row(sample.positive),
        "negatives": [
            {"kind": negative.kind, **_memory_row(negative.memory)} for negative in sample.negatives
        ],
    }


def _memory_row(memory: GeneratedMemory) -> dict[str, object]:
    return {
        "text": memory.text,
        "days_ago": memory.days_ago,
        "type": memory.type,
        "importance": memory.importance,
    }


# Generated samples as ranking cases and as labelled texts, for `ekphory eval agentmem`.

GENERATED = "generated"


def generated_cases(*, count: int, seed: int) -> CaseSet:
    """Make a case of each sample of the test half.

    Raises:
        InvalidInput: `count` is negative.
    """
    samples = generate("test", seed=seed, count=count)
    return CaseSet(
        name=GENERATED,
        cases=tuple(_case(number, sample) for number, sample in enumerate(samples, start=1)),
        origin={"generator": "ekphory.training.memories", "split": "test", "seed": seed},
    )


def generated_labels(*, count: int, seed: int) -> tuple[LabelledText, ...]:
    """Return every text of the samples of the test half once, with its importance and type."""
    found: dict[str, LabelledText] = {}
    for sample in generate("test", seed=seed, count=count):
        for memory in _memories(sample):
            found.setdefault(memory.text, LabelledText(memory.text, memory.importance, memory.type))
    return tuple(found.values())


def _case(number: int, sample: MemorySample) -> RankingCase:
    return RankingCase(
        str(number),
        sample.query,
        _candidate(sample.positive),
        tuple(Distractor(each.kind, _candidate(each.memory)) for each in sample.negatives),
    )


def _candidate(memory: GeneratedMemory) -> Candidate:
    return Candidate(memory.text, memory.days_ago, memory.type)


def _memories(sample: MemorySample) -> Iterator[GeneratedMemory]:
    yield sample.positive
    yield from (each.memory for each in sample.negatives)
