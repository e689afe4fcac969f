"""The two halves share no wording, and every query of a half can be answered in it."""

import re

import pytest

from ekphory_lab.training.memory_words import template, templates, vocabulary

TRAIN, TEST = vocabulary("train"), vocabulary("test")
# Words without a topic of their own; whatever else one half names, the other does not.
EVERYDAY = set(
    """a an the of at in on over for from with by to and not than all up down out off after into
    before it s one two first second half""".split()
)


def memory_templates(split):
    kinds = [kind for kinds in templates(split).kinds.values() for kind in kinds]
    return [each.text for kind in kinds for part in kind.voices.values() for each in part]


def query_templates(split):
    given = templates(split)
    kinds = [kind for kinds in given.kinds.values() for kind in kinds]
    asked = [*kinds, *given.generic.values()]
    return [each.text for queries in asked for each in (*queries.named, *queries.mine)]


def phrases(words):
    for topic in words.topics:
        yield from (topic.subject, *topic.things, *topic.choices, *topic.events, *topic.units)
        for task in topic.tasks:
            yield from task


def naming_words(words):
    """The words of what topics are about: their subjects, things, choices and units."""
    named = (
        phrase
        for topic in words.topics
        for phrase in (topic.subject, *topic.things, *topic.choices, *topic.units)
    )
    return {word for phrase in named for word in re.findall(r"[a-z]+", phrase.lower())} - EVERYDAY


def without_names(text):
    return re.sub(r"\{\w+\}", "_", text).lower()


@pytest.mark.parametrize("gather", [memory_templates, query_templates])
def test_no_template_is_in_both_halves(gather):
    train, test = set(map(without_names, gather("train"))), set(map(without_names, gather("test")))
    assert train & test == set()
    # A half names no template twice.
    assert all(len(set(gather(split))) == len(gather(split)) for split in ("train", "test"))


def test_nothing_that_is_put_around_a_text_is_in_both_halves():
    train, test = templates("train"), templates("test")
    assert {words for each in train.stresses for words in each.words}.isdisjoint(
        words for each in test.stresses for words in each.words
    )
    assert set(train.echoes).isdisjoint(test.echoes)
    assert set(train.hearsays).isdisjoint(test.hearsays)


def test_no_entity_phrase_or_word_that_names_a_topic_is_in_both_halves():
    for list_name in ("people", "places", "conditions"):
        assert set(getattr(TRAIN, list_name)).isdisjoint(getattr(TEST, list_name)), list_name
    assert set(phrases(TRAIN)) & set(phrases(TEST)) == set()
    assert naming_words(TRAIN) & naming_words(TEST) == set()


@pytest.mark.parametrize(("split", "memories", "queries"), [("train", 60, 60), ("test", 30, 30)])
def test_there_are_many_templates(split, memories, queries):
    assert len(memory_templates(split)) >= memories
    assert len(query_templates(split)) >= queries
    # Every query has a memory that holds what it asks.
    for kinds in templates(split).kinds.values():
        for kind in kinds:
            for query in (*kind.named, *kind.mine):
                answers = (*kind.said, *kind.told)
                assert any(query.asked <= answer.slots for answer in answers), query.text
    # Every memory names something of its topic.
    topical = {"subject", "thing", "choice", "other", "task", "step", "then", "event", "count"}
    without = [text for text in memory_templates(split) if not topical & template(text).slots]
    assert without == []  # the same said of another topic has to read otherwise
