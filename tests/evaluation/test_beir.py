import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.loaders import load_beir


@pytest.fixture
def beir_folder(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Cats", "text": "They purr."}\n'
        '{"_id": "d2", "title": "", "text": "Dogs bark."}\n'
    )
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "1", "text": "who purrs", "metadata": {}}\n{"_id": "2", "text": "who barks"}\n'
    )
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n")
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n2\td2\t1\n")
    return tmp_path


def test_a_document_is_its_title_and_its_text(beir_folder):
    texts = [passage.text for passage in load_beir(beir_folder).pools[""]]
    assert texts == ["Cats They purr.", "Dogs bark."]


def test_only_the_queries_of_the_split_are_taken(beir_folder):
    assert [query.id for query in load_beir(beir_folder).queries] == ["1"]
    assert [query.id for query in load_beir(beir_folder, split="train").queries] == ["2"]


def test_graded_judgements_are_kept(beir_folder):
    assert load_beir(beir_folder).qrels == {("", "1"): {"d1": 2}}


def test_a_document_that_is_there_twice_names_its_line(beir_folder):
    with (beir_folder / "corpus.jsonl").open("a") as stream:
        stream.write('{"_id": "d1", "text": "again"}\n')
    with pytest.raises(DatasetError, match=r"corpus\.jsonl:3: id 'd1' is twice"):
        load_beir(beir_folder)


def test_a_missing_split_is_an_error_that_names_the_file(beir_folder):
    with pytest.raises(DatasetError, match=r"dev\.tsv: no such file"):
        load_beir(beir_folder, split="dev")
