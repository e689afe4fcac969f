from random import Random

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.training.sources import document_groups, load_training_data
from ekphory_lab.training.texts import read_document_file, read_documents, sha256_of_texts

IRON = """\
subject: iron in phagocytes
## Smoke lowers ferroportin in alveolar macrophages
We exposed 24 mice for six weeks.

Ferroportin fell by a third.
? tobacco raises iron export from lung phagocytes
? Which cells lost their iron exporter?
## Hepcidin in the spleen
Hepcidin rose twofold.
? spleen hepcidin
"""
LEAVE = """\
subject: leave
## Parental leave
Twelve weeks are paid.
? paid weeks for parents
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="01"):
        path = tmp_path / f"{name}.txt"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_document_has_its_title_text_and_searches(written):
    assert read_document_file(written(IRON)) == {
        "id": "01",
        "subject": "iron in phagocytes",
        "documents": [
            {
                "title": "Smoke lowers ferroportin in alveolar macrophages",
                "text": "We exposed 24 mice for six weeks. Ferroportin fell by a third.",
                "searches": [
                    "tobacco raises iron export from lung phagocytes",
                    "Which cells lost their iron exporter?",
                ],
            },
            {
                "title": "Hepcidin in the spleen",
                "text": "Hepcidin rose twofold.",
                "searches": ["spleen hepcidin"],
            },
        ],
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("subject: iron", "iron", "line 1: no subject"),
        ("## Smoke lowers", "Smoke lowers", "stands before the first title"),
        ("? spleen hepcidin\n", "", "'Hepcidin in the spleen' has no text, or no search"),
        ("Hepcidin rose twofold.\n", "", "'Hepcidin in the spleen' has no text, or no search"),
        ("## Hepcidin in", "Hepcidin in", "line 8: 'Hepcidin in the spleen' must be a line"),
        ("## Hepcidin in", "##Hepcidin in", "line 8: '##Hepcidin in the spleen' must be a line"),
        ("? spleen hepcidin", "?spleen", "line 10: '\\?spleen' must be a line of a document"),
        ("We exposed", "subject: We exposed", "line 3: 'subject: We exposed 24 mice"),
    ],
)
def test_what_is_out_of_place_is_named(written, old, new, said):
    path = written(IRON.replace(old, new))

    with pytest.raises(DatasetError, match=said):
        read_document_file(path)


@pytest.mark.parametrize("text", ["", "subject: nothing\n"])
def test_a_file_without_documents_is_an_error(written, text):
    with pytest.raises(DatasetError, match=r"no subject|holds no document"):
        read_document_file(written(text))


def test_a_file_that_is_no_text_is_an_error(tmp_path):
    (tmp_path / "01.txt").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(DatasetError, match=r"01\.txt: cannot be read as UTF-8"):
        read_documents(tmp_path)


def test_a_folder_without_documents_is_an_error(tmp_path):
    with pytest.raises(DatasetError, match="holds no documents"):
        read_documents(tmp_path)


def test_two_subjects_compete_in_a_group(written, tmp_path):
    written(IRON, "01")
    written(LEAVE, "02")
    (group,) = document_groups(read_documents(tmp_path), Random(1))

    assert len(group.passages) == 3
    assert {question.text for question in group.questions} == {
        "tobacco raises iron export from lung phagocytes",
        "Which cells lost their iron exporter?",
        "spleen hepcidin",
        "paid weeks for parents",
    }
    for question in group.questions:
        (answering,) = question.positives
        shared = {"spleen hepcidin": "Hepcidin rose", "paid weeks for parents": "are paid"}
        assert shared.get(question.text, "We exposed 24 mice") in group.passages[answering]


def test_some_documents_come_without_their_title(written, tmp_path):
    written(LEAVE)
    rows = read_documents(tmp_path)
    passages = {next(document_groups(rows, Random(seed))).passages[0] for seed in range(20)}

    assert passages == {"Parental leave. Twelve weeks are paid.", "Twelve weeks are paid."}


def test_the_documents_in_the_package_are_a_source_of_training(tmp_path):
    from ekphory_lab.training.texts import DOCUMENTS

    data = load_training_data(tmp_path, ["documents"])
    groups = list(data.epochs["documents"](Random(1)))

    assert sum(len(group.passages) for group in groups) > 800
    assert data.hashes == {"documents": sha256_of_texts(DOCUMENTS)}
