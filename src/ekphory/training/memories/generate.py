"""The generator: an endless supply of samples, the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ekphory.errors import InvalidInput
from ekphory.training.memories.negatives import Answer, draw_negatives
from ekphory.training.memories.question import draw_question
from ekphory.training.memories.sample import MemorySample
from ekphory.training.memories.situation import draw_situation
from ekphory.training.memories.templates import Stress, Templates, templates
from ekphory.training.memories.vocabulary import Split, Vocabulary, vocabulary
from ekphory.training.memories.wording import draw_wording, opposite

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
