"""What is trained on and what is measured on share no sentence."""

import gzip
import json
import re
from itertools import chain
from pathlib import Path

import pytest

from ekphory_lab.evaluation.ablation import load_benchmark
from ekphory_lab.training.capture_texts import read_transcripts
from ekphory_lab.training.change_topics import read_topics
from ekphory_lab.training.changes import read_scenarios
from ekphory_lab.training.hops import CHAINS
from ekphory_lab.training.near_turns import STORES
from ekphory_lab.training.probability_scopes import DEVELOPMENT_CONVERSATIONS
from ekphory_lab.training.texts import EXCHANGES, read_conversations, read_documents

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
SETS = (
    *("locomo_dev/locomo.json", "realtalk", "beam_100k", "temporal_dev", "2wiki_dev", "scifact"),
    "everyday_dev",
)
RUN = 8
WORD = re.compile(r"[a-z0-9']+")


def runs(text):
    words = WORD.findall(text.lower())
    return {" ".join(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


@pytest.fixture(scope="module")
def trained():
    conversations = [*read_conversations(), *read_conversations(EXCHANGES)]
    return written([*conversations, *read_conversations(CHAINS)]) | documents()


@pytest.fixture(scope="module")
def development():
    return written(read_conversations(DEVELOPMENT_CONVERSATIONS))


def documents():
    found = [document for row in read_documents() for document in row["documents"]]
    texts = [text for each in found for text in (each["title"], each["text"], *each["searches"])]
    return set().union(*map(runs, texts))


def written(rows):
    texts = [turn["text"] for row in rows for turn in row["turns"]]
    asked = [question["query"] for row in rows for question in row["questions"]]
    return set().union(*(runs(text) for text in (*texts, *asked)))


@pytest.mark.slow
def test_no_eight_words_in_a_row_are_trained_on_and_developed_on(trained, development):
    assert len(development) > 10_000
    assert trained & development == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_no_eight_words_in_a_row_are_those_of_an_evaluation_set(trained, development, name):
    if not (SHARED / name).exists():
        pytest.skip("benchmark data is not beside the repository (../shared/data)")
    found = load_benchmark(SHARED / name).dataset
    texts = [passage.text for pool in found.pools.values() for passage in pool]
    measured = set().union(*map(runs, texts), *(runs(query.text) for query in found.queries))

    assert len(measured) > 1_000
    assert trained & measured == set()
    assert development & measured == set()


def texts_of_changes():
    for each in (*read_scenarios(), *read_scenarios(STORES)):
        yield from (item.text for item in (*each.statements.values(), *each.questions))
    for topic in read_topics():
        yield from chain.from_iterable(topic.lines.values())


def texts_of_captures():
    return (each.message.text for one in read_transcripts() for each in one.messages)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fields", "written_texts"),
    [
        (
            "updates_dev/scenarios.jsonl",
            {"memories": "text", "questions": "text"},
            texts_of_changes,
        ),
        ("capture_dev/transcripts.jsonl.gz", {"messages": "content"}, texts_of_captures),
    ],
)
def test_readers_are_trained_on_no_eight_words_of_an_evaluation_set(name, fields, written_texts):
    path = SHARED / name
    if not path.exists():
        pytest.skip("benchmark data is not beside the repository (../shared/data)")
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    measured = [item[text] for row in rows for field, text in fields.items() for item in row[field]]
    texts = list(written_texts())
    assert len(texts) > 10_000
    assert set().union(*map(runs, measured)) & set().union(*map(runs, texts)) == set()


def test_every_conversation_has_two_speakers_and_questions_about_most_of_its_sessions():
    for row in [*read_conversations(), *read_conversations(DEVELOPMENT_CONVERSATIONS)]:
        assert len({turn["speaker"] for turn in row["turns"]}) == 2, row["id"]
        answered = {
            row["turns"][place]["session"] for each in row["questions"] for place in each["turns"]
        }
        assert len(answered) >= 2, row["id"]
