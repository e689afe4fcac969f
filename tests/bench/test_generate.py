from collections import Counter
from datetime import UTC, datetime
from importlib.resources import files

import pytest
from tokenizers import Tokenizer

from ekphory.models.model_record import TOKENIZER_FILE
from ekphory.models.onnx_models import BUNDLED
from ekphory_lab.bench.generate import Corpus, passage
from ekphory_lab.bench.options import TURNS

LOCOMO_TOKENS = 38


def texts(corpus, start, stop):
    return [str(record["text"]) for record in corpus.records(start, stop)]


def test_the_first_memory_of_a_seed_is_always_the_same():
    (record,) = Corpus(seed=7, scopes=50).records(0, 1)
    assert record == {
        "id": "m00000000",
        "text": (
            "Our answer is to memorise the essay in Orstotor. Anna said the tutor is too strict "
            "for us. It took me 4 hours to study the school."
        ),
        "at": datetime(2025, 1, 6, 8, 0, tzinfo=UTC),
        "producer": "Elif",
        "project": "project-00",
        "session": "session-0",
        "sequence": 0,
        "pool": "shared_knowledge",
        "metadata": {"channel": "meeting"},
    }


@pytest.mark.parametrize(("start", "stop"), [(0, 25), (24, 26), (37, 90), (99, 100)])
def test_a_stretch_is_the_same_by_itself_as_within_the_whole(start, stop):
    whole = list(Corpus().records(0, 100))
    assert list(Corpus().records(start, stop)) == whole[start:stop]


def test_sessions_of_two_speakers_are_dealt_to_the_projects_in_turn():
    projects = [record["project"] for record in Corpus(scopes=3).records(0, 4 * TURNS)]
    assert projects[::TURNS] == ["project-00", "project-01", "project-02", "project-00"]
    assert len(set(projects[:TURNS])) == 1
    # The number of scopes changes no text.
    assert texts(Corpus(scopes=1), 0, 200) == texts(Corpus(scopes=50), 0, 200)
    # The memories of a session come in order of time.
    session = list(Corpus().records(0, TURNS))
    assert [record["sequence"] for record in session] == list(range(TURNS))
    assert {record["session"] for record in session} == {"session-0"}
    assert len({record["producer"] for record in session}) == 2
    assert [record["at"] for record in session] == sorted(record["at"] for record in session)
    # Several pools are filled.
    pools = Counter(record["pool"] for record in Corpus().records(0, 2_000))
    assert set(pools) == {"agent_memory", "agent_tools", "agent_mistakes", "shared_knowledge"}
    assert 0.75 < pools["agent_memory"] / 2_000 < 0.85


@pytest.mark.slow
def test_a_memory_has_as_many_tokens_as_a_turn_of_locomo_on_average():
    path = files("ekphory.models").joinpath("bundled", BUNDLED, TOKENIZER_FILE)
    tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    passages = [passage(record) for record in Corpus().records(0, 5_000)]
    lengths = sorted(len(each.ids) for each in tokenizer.encode_batch(passages))
    assert abs(sum(lengths) / len(lengths) - LOCOMO_TOKENS) < 1
    # LoCoMo's own 5th and 95th percentiles are 15 and 73.
    assert 12 <= lengths[250] <= 18
    assert 66 <= lengths[4_750] <= 80


def test_few_words_are_frequent_and_a_session_keeps_to_its_own():
    words = Counter(
        word.strip(".,?!").lower() for text in texts(Corpus(), 0, 5_000) for word in text.split()
    )
    counts = sorted(words.values(), reverse=True)
    assert sum(counts[:50]) > 0.4 * sum(counts)
    assert sum(count <= 5 for count in counts) > 0.15 * len(counts)
    # Two halves of a session share more words than two sessions.
    first, second, *others = (
        {word.lower() for text in texts(Corpus(), start, start + 12) for word in text.split()}
        for start in (0, 12, 25, 50, 75, 100, 125)
    )
    assert len(first & second) > max(len(first & other) for other in others)


def test_questions_are_distinct_of_5_to_12_words_and_asked_where_memories_are():
    queries = Corpus().queries(300, rows=1_000)
    assert len({query.text for query in queries}) == 300
    assert all(5 <= len(query.text.split()) <= 12 for query in queries)
    # A question is asked in a scope that holds memories.
    projects = {record["project"] for record in Corpus(scopes=5).records(0, 3 * TURNS)}
    asked = {query.project for query in Corpus(scopes=5).queries(100, rows=3 * TURNS)}
    assert asked == projects == {"project-00", "project-01", "project-02"}
