"""Generated memories: a query, the memory that answers it, and hard negatives.

The same seed gives the same ones.
"""

from __future__ import annotations

import json
import random
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from pydantic import TypeAdapter

from ekphory.errors import DatasetError, InvalidInput
from ekphory.models.late_bound import AGE_BUCKETS, AGE_LIMITS_DAYS
from ekphory.types import MemoryType
from ekphory_lab.evaluation.agentmem_cases import (
    Candidate,
    CaseSet,
    Distractor,
    LabelledText,
    RankingCase,
)
from ekphory_lab.training.memory_words import (
    OPPOSITE,
    Kind,
    Queries,
    Split,
    Stress,
    Template,
    Templates,
    TimePhrase,
    Topic,
    Vocabulary,
    Voice,
    templates,
    vocabulary,
)

# Ages in days, in ten buckets.

OLDEST = 1500
"""The greatest age that is drawn, in days."""

_LOWEST = (0, *AGE_LIMITS_DAYS)
_HIGHEST = (*AGE_LIMITS_DAYS, OLDEST)


def bucket_of(days: float) -> int:
    """Return the bucket of an age, from 0 to 9."""
    return bisect_left(AGE_LIMITS_DAYS, days)


def draw_age(source: random.Random) -> float:
    """Draw a bucket, and an age within it."""
    return _age_within(source, source.randrange(AGE_BUCKETS))


def draw_age_outside(source: random.Random, phrase: TimePhrase) -> float:
    """Draw an age from a bucket that the phrase does not touch."""
    first, last = bucket_of(phrase.low), bucket_of(phrase.high)
    free = [bucket for bucket in range(AGE_BUCKETS) if not first <= bucket <= last]
    return _age_within(source, source.choice(free))


def _age_within(source: random.Random, bucket: int) -> float:
    low = _LOWEST[bucket] + (0.1 if bucket else 0.0)
    return round(source.uniform(low, _HIGHEST[bucket]), 1)


# What the memories of one sample share: who, where, about what, with which numbers.

USER = "the user"
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_DAYS_OF_A_MONTH = 28
_SUMS = (10, 50, 500, 5_000, 50_000)
_GRADES = (0.3, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Situation:
    """What fills the slots.

    Attributes:
        topic: What it is about.
        sum: The sum of money, in dollars.
        slots: Value by slot.
    """

    topic: Topic
    sum: int
    slots: Mapping[str, str]

    @property
    def person(self) -> str:
        """Whom it is about; `USER` for the user."""
        return self.slots["person"]

    @property
    def money_importance(self) -> float:
        """How much a payment of this sum matters: less than 50, 500, 5,000 dollars, or more."""
        return next(
            grade
            for grade, most in zip(_GRADES, (*_SUMS[1:-1], _SUMS[-1] + 1), strict=True)
            if self.sum < most
        )


def draw_situation(source: random.Random, words: Vocabulary, *, mine: bool) -> Situation:
    """Draw everything anew; `mine` is about the user."""
    person, friend = source.sample(words.people, 2)
    topic = source.choice(words.topics)
    slots = {
        "person": USER if mine else person,
        "friend": friend,
        "place": source.choice(words.places),
        "condition": source.choice(words.conditions),
        **_topic_slots(source, topic),
    }
    return with_other_numbers(source, Situation(topic, 0, slots))


def with_other_topic(source: random.Random, words: Vocabulary, situation: Situation) -> Situation:
    """Keep who, where and which numbers; change what it is about."""
    topic = source.choice([each for each in words.topics if each is not situation.topic])
    number = situation.slots["count"].partition(" ")[0]
    slots = {**situation.slots, **_topic_slots(source, topic)}
    slots["count"] = f"{number} {slots['unit']}"
    return replace(situation, topic=topic, slots=slots)


def with_other_details(source: random.Random, situation: Situation) -> Situation:
    """Keep who, where, the topic and which numbers; change the things within the topic."""
    old, topic = situation.slots, situation.topic
    task = source.choice([task for task in topic.tasks if task[0] != old["task"]])
    choice, other = source.sample(
        [each for each in topic.choices if each not in (old["choice"], old["other"])], 2
    )
    changed = {
        "thing": _another(source, topic.things, old["thing"]),
        "event": _another(source, topic.events, old["event"]),
        "choice": choice,
        "other": other,
        **_task_slots(task),
    }
    return replace(situation, slots={**old, **changed})


def with_another(
    source: random.Random, situation: Situation, slot: str, values: Sequence[str]
) -> Situation:
    """Change one slot, the person or the place, and nothing else."""
    taken = (situation.slots[slot], situation.slots["friend"])
    value = source.choice([each for each in values if each not in taken])
    return replace(situation, slots={**situation.slots, slot: value})


def with_other_numbers(source: random.Random, situation: Situation) -> Situation:
    """Change every number; the first time it draws them."""
    old, changed = situation.slots, dict(situation.slots)
    grade = source.randrange(len(_GRADES))
    total = source.randint(_SUMS[grade], _SUMS[grade + 1] - 1)
    changed["money"] = f"${total:,}"
    changed["count"] = f"{source.randint(2, 60)} {old['unit']}"
    day, month = source.randint(1, _DAYS_OF_A_MONTH), source.choice(_MONTHS)
    changed["date"] = source.choice((f"{day} {month}", f"{month} {day}"))
    hour, minute = source.randint(6, 21), source.choice(("00", "15", "30", "45"))
    changed["clock"] = f"{hour}:{minute}"
    same = any(old.get(name) == changed[name] for name in ("money", "count", "date", "clock"))
    if same:
        return with_other_numbers(source, situation)
    return replace(situation, sum=total, slots=changed)


def _topic_slots(source: random.Random, topic: Topic) -> dict[str, str]:
    choice, other = source.sample(topic.choices, 2)
    task = source.choice(topic.tasks)
    return {
        "subject": topic.subject,
        "thing": source.choice(topic.things),
        "choice": choice,
        "other": other,
        **_task_slots(task),
        "event": source.choice(topic.events),
        "unit": source.choice(topic.units),
    }


def _task_slots(task: Sequence[str]) -> dict[str, str]:
    return dict(zip(("task", "step", "then"), task, strict=True))


def _another(source: random.Random, values: tuple[str, ...], old: str) -> str:
    return source.choice([value for value in values if value != old])


# What the generator makes: a query, the memory that answers it, and memories that do not.

NegativeKind = Literal[
    "temporal",
    "type_confusion",
    "topic_drift",
    "entity_confusion",
    "negation",
    "number",
    "near_duplicate",
]
NEGATIVES = 7
"""Negatives of a sample; with the positive memory that is eight candidates."""


@dataclass(frozen=True, slots=True)
class GeneratedMemory:
    """One memory.

    Attributes:
        text: What is embedded; `speaker: text` where it is known who says it.
        days_ago: Its age in days, not negative.
        type: What kind of memory it is.
        importance: In [0, 1]; follows from the text.
    """

    text: str
    days_ago: float
    type: MemoryType
    importance: float


@dataclass(frozen=True, slots=True)
class HardNegative:
    """A memory that resembles the answer, but does not answer.

    Attributes:
        kind: What is wrong with it: `temporal` the same at another age; `type_confusion` another
            type about the same; `topic_drift` the same said about another topic;
            `entity_confusion` another person or place; `negation` denied, or no longer true, or
            claimed where the query asks for that;
            `number` another number than the query names; `near_duplicate` almost the answer's
            words, about another thing or claimed by nobody, or the question itself.
        memory: The memory.
    """

    kind: NegativeKind
    memory: GeneratedMemory


@dataclass(frozen=True, slots=True)
class MemorySample:
    """One query with its candidates.

    Attributes:
        query: Asks in words; no age, type or importance comes with it.
        positive: The one memory that answers.
        negatives: `NEGATIVES` hard negatives, no two alike. A query without words for a time has no
            `temporal` one, a query without a number no `number` one; the other kinds are there.
    """

    query: str
    positive: GeneratedMemory
    negatives: tuple[HardNegative, ...]

    @property
    def memories(self) -> tuple[GeneratedMemory, ...]:
        """All candidates, the one that answers first."""
        return (self.positive, *(each.memory for each in self.negatives))


# Turns a template and a situation into the text of a memory, with its importance.

_STRESSED_SHARE = 0.3
_SHOWN_SPEAKER_SHARE = 0.6
_LESS_WHEN_DENIED = 0.35
_LEAST_WHEN_DENIED = 0.1
_PLAIN = "{text}"


@dataclass(frozen=True, slots=True)
class Wording:
    """How a memory is put, whomever and whatever it is about.

    Attributes:
        kind: The kind of memory.
        voice: Who says it, and whether it is denied.
        template: The sentence, one of that kind and voice.
        stress: Words around it, with the slot `text`.
        change: What these add to the importance.
        speaker: What stands before the user's own words, `user` or nothing.
    """

    kind: Kind
    voice: Voice
    template: Template
    stress: str = _PLAIN
    change: float = 0.0
    speaker: str = ""

    def memory(self, situation: Situation, days_ago: float) -> GeneratedMemory:
        """Say it about that situation."""
        return GeneratedMemory(
            self._text(situation), days_ago, self.kind.type, self._importance(situation)
        )

    def _text(self, situation: Situation) -> str:
        text = self.template.text.format_map(situation.slots)
        if self.stress is not _PLAIN:
            # "The tap" becomes "the tap" within a sentence; names and "I" stay as they are.
            opening = self.template.text[:2]
            movable = opening[0].isupper() and opening != "I " and self.stress[0] != "{"
            text = self.stress.format(text=text[0].lower() + text[1:] if movable else text)
        text = text[0].upper() + text[1:]
        if self.voice.startswith("told"):
            return text
        speaker = self.speaker if situation.person == USER else situation.person
        return f"{speaker}: {text}" if speaker else text

    def _importance(self, situation: Situation) -> float:
        by_money = self.kind.graded_by == "money"
        graded = situation.money_importance if by_money else self.kind.importance
        if self.voice.endswith("_not"):
            graded = max(min(graded, _LEAST_WHEN_DENIED), graded - _LESS_WHEN_DENIED)
        return round(min(1.0, max(0.0, graded + self.change)), 2)


def draw_wording(
    source: random.Random, kind: Kind, asked: frozenset[str], stresses: tuple[Stress, ...]
) -> Wording:
    """Draw a sentence of that kind; one with everything that is asked, where there is one."""
    said, told = kind.said, kind.told
    holding = _holding(said, asked), _holding(told, asked)
    if any(holding):
        said, told = holding
    use_said = not told or (bool(said) and source.random() < 1 / 2)
    speaker = "user" if source.random() < _SHOWN_SPEAKER_SHARE else ""
    voice: Voice = "said" if use_said else "told"
    template = source.choice(said if use_said else told)
    wording = Wording(kind, voice, template, speaker=speaker)
    if stresses and source.random() < _STRESSED_SHARE:
        return stressed(source, wording, stresses)
    return wording


def stressed(source: random.Random, wording: Wording, stresses: tuple[Stress, ...]) -> Wording:
    """Put words for importance around it."""
    stress = source.choice(stresses)
    return replace(wording, stress=source.choice(stress.words), change=stress.change)


def opposite(source: random.Random, wording: Wording) -> Wording:
    """Deny it, or say that it is no longer so, in the same voice; of a denial, claim it."""
    voice = OPPOSITE[wording.voice]
    return replace(wording, voice=voice, template=source.choice(wording.kind.voices[voice]))


def _holding(candidates: tuple[Template, ...], asked: frozenset[str]) -> tuple[Template, ...]:
    return tuple(each for each in candidates if asked <= each.slots)


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

    def text(self, situation: Situation, *, timed: bool = True) -> str:
        """Ask about that situation, naming the time or not."""
        text = self.template.text.format_map(
            {**situation.slots, "when": self.when if timed else ""}
        )
        return text[0].upper() + text[1:]


def draw_question(source: random.Random, wordings: Templates) -> Question:
    """Draw a question; its answer's age is spread evenly over the buckets."""
    type_ = source.choices(_TYPES, _TYPE_WEIGHTS)[0]
    kinds = wordings.kinds[type_]
    kind = source.choices(kinds, [each.weight for each in kinds])[0]
    aim = _draw_aim(source, kind)
    days_ago = draw_age(source)
    fitting = [phrase for phrase in wordings.times if phrase.covers(days_ago)]
    time = source.choice(fitting) if _chance(source, _TIMED_SHARE) and fitting else None
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
        return kind
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


def _chance(source: random.Random, share: float) -> bool:
    return source.random() < share


# Makes the memories that resemble the answer, but do not answer: one rule for each kind.

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
    fitting: dict[NegativeKind, bool] = {
        "temporal": question.time is not None,
        "number": bool(question.template.asked_numbers),
    }
    return tuple(kind for kind in _MAKERS if fitting.get(kind, True))


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
    return _moved(source, answer, with_other_topic(source, answer.words, answer.situation))


def _moved(source: random.Random, answer: Answer, situation: Situation) -> GeneratedMemory:
    return answer.wording.memory(situation, _any_age(source, answer))


def _entity_confusion(source: random.Random, answer: Answer) -> GeneratedMemory:
    if "place" in answer.question.template.slots and source.random() < _SAME_WORDS_SHARE:
        changed = with_another(source, answer.situation, "place", answer.words.places)
    else:
        changed = with_another(source, answer.situation, "person", answer.words.people)
    return _moved(source, answer, changed)


def _negation(source: random.Random, answer: Answer) -> GeneratedMemory:
    days_ago = _any_age(source, answer)
    if answer.question.time is None:
        # Were it newer, the answer would be outdated.
        newest = answer.memory.days_ago
        days_ago = round(source.uniform(newest + 0.1, max(2 * newest, newest + 30)), 1)
    return opposite(source, answer.wording).memory(answer.situation, days_ago)


def _number(source: random.Random, answer: Answer) -> GeneratedMemory:
    return _moved(source, answer, with_other_numbers(source, answer.situation))


def _near_duplicate(source: random.Random, answer: Answer) -> GeneratedMemory:
    if source.random() < _ECHO_SHARE:
        return _echo(source, answer)
    if answer.question.aim == "importance":
        return _triviality(source, answer)
    if answer.question.template.asked & _DETAILS and source.random() < 1 / 2:
        return _moved(source, answer, with_other_details(source, answer.situation))
    return _hearsay(source, answer)


def _triviality(source: random.Random, answer: Answer) -> GeneratedMemory:
    kind = source.choice(_unimportant(_all_kinds(answer)))
    wording = draw_wording(source, kind, _NOTHING_ASKED, ())
    wording = stressed(source, wording, _softening(answer.templates.stresses))
    return wording.memory(answer.situation, _any_age(source, answer))


def _echo(source: random.Random, answer: Answer) -> GeneratedMemory:
    question = answer.question
    asked = question.text(answer.situation, timed=source.random() < 1 / 2)
    asker = source.choice(answer.words.people)
    text = source.choice(answer.templates.echoes).format(asker=asker, query=asked.rstrip("?") + "?")
    return GeneratedMemory(text, _any_age(source, answer), "episodic", _CLAIMED_BY_NOBODY)


def _hearsay(source: random.Random, answer: Answer) -> GeneratedMemory:
    asker = source.choice(answer.words.people)
    text = source.choice(answer.templates.hearsays).format(asker=asker, text=answer.memory.text)
    return GeneratedMemory(text, _any_age(source, answer), answer.memory.type, _CLAIMED_BY_NOBODY)


def _any_age(source: random.Random, answer: Answer) -> float:
    time = answer.question.time
    if time is not None and source.random() < _SAME_TIME_SHARE:
        return round(source.uniform(time.low, time.high), 1)
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
        InvalidInput: `split` is another word, or `count` is negative.
    """
    if split not in get_args(Split):
        raise InvalidInput("split", split, "must be train or test", "Give one of them.")
    if count < 0:
        raise InvalidInput("count", count, "must be 0 or more", "Give how many samples to make.")
    source = random.Random(f"{split} {seed}")  # noqa: S311  no secret
    words, wordings = vocabulary(split), templates(split)
    return (_sample(source, words, wordings) for _ in range(count))


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
_SAMPLE = TypeAdapter(MemorySample)


@dataclass(frozen=True, slots=True)
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
        "positive": asdict(sample.positive),
        "negatives": [{"kind": each.kind, **asdict(each.memory)} for each in sample.negatives],
    }


def read_samples(file: Path) -> Iterator[MemorySample]:
    """Read what `write_samples` wrote, line by line.

    Raises:
        DatasetError: The file holds something else.
    """
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                negatives = [{"kind": each["kind"], "memory": each} for each in row["negatives"]]
                yield _SAMPLE.validate_python({**row, "negatives": negatives})
            except (KeyError, TypeError, ValueError) as error:
                raise DatasetError(
                    f"{file}, line {number}: not a sample ({type(error).__name__}: {error}). "
                    "Give a file that `ekphory train generate` wrote."
                ) from error


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
        origin={"generator": __name__, "split": "test", "seed": seed},
    )


def generated_labels(*, count: int, seed: int) -> tuple[LabelledText, ...]:
    """Return every text of the samples of the test half once, with its importance and type."""
    found: dict[str, LabelledText] = {}
    for sample in generate("test", seed=seed, count=count):
        for memory in sample.memories:
            found.setdefault(memory.text, LabelledText(memory.text, memory.importance, memory.type))
    return tuple(found.values())


def _case(number: int, sample: MemorySample) -> RankingCase:
    answer, *others = (Candidate(each.text, each.days_ago, each.type) for each in sample.memories)
    kinds = (each.kind for each in sample.negatives)
    return RankingCase(str(number), sample.query, answer, tuple(map(Distractor, kinds, others)))
