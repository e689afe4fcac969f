from collections import Counter
from itertools import islice
from typing import get_args

import pytest

from ekphory.errors import InvalidInput
from ekphory_lab.training.memories import NegativeKind, bucket_of, generate
from ekphory_lab.training.memory_words import templates


@pytest.fixture(scope="module")
def samples():
    return tuple(generate("train", seed=3, count=3_000))


def negatives(samples, kind):
    return [
        (sample, negative.memory)
        for sample in samples
        for negative in sample.negatives
        if negative.kind == kind
    ]


def test_the_same_seed_gives_the_same_samples_another_one_others():
    first, again, second = (tuple(generate("test", seed=seed, count=20)) for seed in (1, 1, 2))
    assert first == again != second


@pytest.mark.slow
def test_more_samples_begin_with_the_same_ones(samples):
    assert tuple(islice(generate("train", seed=3, count=10**9), 50)) == samples[:50]


def test_forty_percent_are_episodic_thirty_five_semantic_the_rest_procedural(samples):
    counts = Counter(sample.positive.type for sample in samples)
    shares = {name: round(count / len(samples), 1) for name, count in counts.items()}
    assert shares["episodic"] == pytest.approx(0.40, abs=0.03)
    assert shares["semantic"] == pytest.approx(0.35, abs=0.06)
    assert set(counts) == {"episodic", "semantic", "procedural"}
    # Every age bucket holds a tenth of the answers.
    counts = Counter(bucket_of(sample.positive.days_ago) for sample in samples)
    assert all(
        counts[bucket] / len(samples) == pytest.approx(0.1, abs=0.03) for bucket in range(10)
    )

    # Importance has many levels between 0 and 1.
    found = {sample.positive.importance for sample in samples}
    assert (min(found), max(found)) == (0.0, 1.0)
    assert len(found) > 10


def test_the_upper_bound_of_a_bucket_belongs_to_it():
    buckets = {0: 0, 1: 0, 1.1: 1, 3: 1, 30: 4, 365: 8, 365.1: 9}
    assert {days: bucket_of(days) for days in buckets} == buckets


def test_every_sample_has_seven_negatives_and_no_two_candidates_alike(samples):
    for sample in samples:
        memories = [sample.positive, *(negative.memory for negative in sample.negatives)]
        assert len({(memory.text, memory.days_ago) for memory in memories}) == 8
    # Every kind of negative occurs.
    assert {each.kind for sample in samples for each in sample.negatives} == set(
        get_args(NegativeKind)
    )


def test_a_temporal_negative_says_the_like_at_an_age_of_another_bucket(samples):
    found = negatives(samples, "temporal")
    assert all(bucket_of(m.days_ago) != bucket_of(s.positive.days_ago) for s, m in found)
    assert sum(m.text == s.positive.text for s, m in found) > len(found) / 2
    # A query without words for a time has none.
    words = [each for phrase in templates("train").times for each in phrase.words]
    asked = [each for each in samples if not any(word in each.query for word in words)]
    assert len(asked) > 100
    assert all(each.kind != "temporal" for sample in asked for each in sample.negatives)


def test_a_type_confusion_has_another_type_and_only_a_temporal_negative_the_same_words(samples):
    confused = negatives(samples, "type_confusion")
    assert all(memory.type != sample.positive.type for sample, memory in confused)
    for sample in samples:
        others = [each.memory.text for each in sample.negatives if each.kind != "temporal"]
        assert sample.positive.text not in others


def test_a_denial_differs_in_words_and_mostly_matters_less(samples):
    found = negatives(samples, "negation")
    assert all(memory.text != sample.positive.text for sample, memory in found)
    less = sum(memory.importance <= sample.positive.importance for sample, memory in found)
    assert len(found) > less > 0.85 * len(found)


def test_impossible_wishes_are_refused():
    with pytest.raises(InvalidInput, match="split"):
        generate("dev", seed=0, count=1)
    with pytest.raises(InvalidInput, match="count"):
        generate("train", seed=0, count=-1)
