"""What is trained on and what is measured on share no sentence."""

import re
from pathlib import Path

import pytest

from recollect.evaluation.ablation import load_benchmark
from recollect.training.conversation_files import read_conversations

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
SETS = ("locomo_dev/locomo.json", "realtalk", "beam_100k", "temporal_dev", "2wiki_dev")
RUN = 8
WORD = re.compile(r"[a-z0-9']+")


def runs(text):
    words = WORD.findall(text.lower())
    return {" ".join(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


@pytest.fixture(scope="module")
def written():
    rows = read_conversations()
    texts = [turn["text"] for row in rows for turn in row["turns"]]
    return set().union(*(runs(text) for text in texts), *(asked(row) for row in rows))


def asked(row):
    return set().union(*(runs(question["query"]) for question in row["questions"]))


@pytest.mark.parametrize("name", SETS)
def test_no_eight_words_in_a_row_are_those_of_an_evaluation_set(written, name):
    if not (SHARED / name).exists():
        pytest.skip("benchmark data is not beside the repository (../shared/data)")
    found = load_benchmark(SHARED / name).dataset
    texts = [passage.text for pool in found.pools.values() for passage in pool]
    measured = set().union(*map(runs, texts), *(runs(query.text) for query in found.queries))

    assert len(measured) > 10_000
    assert written & measured == set()


def test_every_conversation_has_two_speakers_and_questions_about_most_of_its_sessions():
    for row in read_conversations():
        assert len({turn["speaker"] for turn in row["turns"]}) == 2, row["id"]
        answered = {
            row["turns"][place]["session"] for each in row["questions"] for place in each["turns"]
        }
        assert len(answered) >= 2, row["id"]
