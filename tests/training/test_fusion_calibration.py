"""Two curves of probabilities, fitted on documents and on conversations."""

import gzip
import json

import pytest

from ekphory.errors import DatasetError, InvalidInput
from ekphory.testing.models import HashEmbedder
from ekphory_lab.training.fusion_calibration import fit_fusion_calibration

CHAT = """kind: texting
## 1 | 2024-05-03 18:02
1.1 Ann: the roof leaks, number {number}
1.2 Ben: the roof leaks as well, number {number}
## 2 | 2024-05-09 08:15
2.1 Ben: the roof holds
2.2 Ann: the roof leaks again
? single | {answer} | When does roof {number} leak? | then
"""


@pytest.fixture
def squad(tmp_path):
    def write(sentences):
        rows = (
            {"sentence": f"the river {number} runs", "query": f"Which river runs {number % 15}?"}
            for number in range(sentences)
        )
        with gzip.open(tmp_path / "squad_sentences.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        return tmp_path

    return write


@pytest.fixture
def chats(tmp_path):
    def write(files):
        folder = tmp_path / "chats"
        folder.mkdir()
        for number in range(files):
            text = CHAT.format(number=number, answer=("1.1", "1.2", "2.1", "2.2")[number % 4])
            (folder / f"{number:02}.txt").write_text(text)
        return folder

    return write


def test_each_kind_of_scope_has_a_curve_of_its_own(squad, chats):
    found = fit_fusion_calibration(
        squad(2400), scopes=4, conversations=chats(24), embedder=HashEmbedder()
    )["balanced"]

    # Three scopes are fitted on, of 50 hits for 5 questions, and of 24 turns for 6 questions.
    assert found.documents.observations == 3 * 5 * 50
    assert found.turns.observations == 3 * 6 * 24
    assert found.documents.curve != found.turns.curve
    for each in (found.documents, found.turns):
        assert 0 <= each.expected_calibration_error < 0.5


def test_a_search_by_words_alone_has_curves_of_its_own(squad, chats):
    found = fit_fusion_calibration(
        squad(2400), scopes=4, conversations=chats(24), embedder=HashEmbedder()
    )

    assert list(found) == ["balanced", "fast"]
    assert found["fast"].documents.curve != found["balanced"].documents.curve
    assert found["fast"].turns.curve != found["balanced"].turns.curve


def test_fewer_than_four_scopes_are_refused_before_anything_is_read(tmp_path):
    with pytest.raises(InvalidInput, match=r"scopes.*Give 4 or more"):
        fit_fusion_calibration(tmp_path, scopes=3)


def test_too_little_data_is_named(squad, chats):
    with pytest.raises(DatasetError, match=r"squad_sentences.*: 3 scopes, so none is held out"):
        fit_fusion_calibration(
            squad(1800), scopes=4, conversations=chats(24), embedder=HashEmbedder()
        )


def test_a_missing_file_is_named(tmp_path, chats):
    with pytest.raises(DatasetError, match=r"squad_sentences\.jsonl\.gz: no such file"):
        fit_fusion_calibration(tmp_path, conversations=chats(6))
