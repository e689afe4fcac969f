import re
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random

from tests.training.reranker.rerank_examples import WordCounts

from ekphory_lab.training.memories import GeneratedMemory, HardNegative, MemorySample
from ekphory_lab.training.reranker.sources import (
    causal_reversal,
    dated_query,
    granularity,
    hard_case_examples,
    memory_examples,
    multi_hop,
)

NOW = datetime(2024, 6, 1, tzinfo=UTC)


def words(text):
    return sorted(re.findall(r"\w+", text.lower()))


def memory(days_ago):
    return GeneratedMemory("Ada fixed the tap", days_ago, "episodic", 0.5)


def test_words_for_a_time_become_the_date_that_they_mean():
    sample = MemorySample("What did Ada fix last month?", memory(40), ())

    assert dated_query(sample, NOW).text == "What did Ada fix in 2024?"
    # A query without a time stays.
    sample = MemorySample("What did Ada fix?", memory(40), ())
    assert dated_query(sample, NOW).text == "What did Ada fix?"
    # The date is as fine as the wrong times need.
    negatives = (HardNegative("temporal", memory(120)), HardNegative("temporal", memory(60)))
    sample = MemorySample("What did Ada fix last month?", memory(33), negatives)

    assert dated_query(sample, NOW).text == "What did Ada fix on 29 April 2024?"
    assert NOW - timedelta(days=33) == datetime(2024, 4, 29, tzinfo=UTC)


def test_generated_memories_bring_denials_entities_and_their_dates():
    found = list(islice(memory_examples(WordCounts(), seed=1), 24))

    kinds = {each.kind for example in found for each in example.candidates}
    assert {"inverse", "entity_confusion", "numerical", "temporal_interference"} <= kinds
    assert all(each.passage.at for example in found for each in example.candidates)
    assert all(sum(each.relevant for each in example.candidates) == 1 for example in found)


def test_cause_and_effect_change_places():
    for seed in range(20):
        found = causal_reversal(Random(seed))
        (answer,) = [text for text, kind in found.said if kind == "answer"]
        reversed_ones = [text for text, kind in found.said if kind == "causal_reversal"]
        assert answer not in reversed_ones
        assert any(words(text) == words(answer) for text in reversed_ones)
    # The coarser answer is wrong.
    found = granularity(Random(2))

    kinds = [kind for _, kind in found.said]
    assert kinds.count("answer") == 1
    assert kinds.count("granularity") == 2
    # Two memories answer together.
    found = multi_hop(Random(3))

    bridge, fact = (text for text, kind in found.said if kind == "answer")
    assert fact.split(":")[0] in bridge


def test_hard_cases_keep_no_slot_open():
    for example in islice(hard_case_examples(WordCounts(), seed=2), 90):
        texts = [example.query.text, *(each.passage.text for each in example.candidates)]
        assert not any("{" in text for text in texts)
