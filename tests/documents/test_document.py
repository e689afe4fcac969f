import json
import subprocess
import sys

import pytest

from documents.making import read
from ekphory.documents.blocks import LeftOut, Problem
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.tree import READERS, reader_for
from ekphory.errors import InvalidInput

WITHOUT = """
import json, sys
from pathlib import Path
sys.modules.update(dict.fromkeys(("pypdfium2", "docx", "lxml")))
from ekphory.documents.tree import READERS
print(json.dumps({reader.name: str(reader.missing_extra() or "") for reader in READERS}))
"""


def test_what_answers_nothing_is_left_out_of_a_document(file):
    left_out, passage = read(file("a.md", "7\n\n# Heating\n\nThe boiler is on.\n"))
    assert left_out == LeftOut("page number")
    assert passage.text == "# Heating\n\nThe boiler is on."


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.html", "a.docx", "a.pdf", "a.rst"])
def test_an_empty_file_of_any_kind_is_told(file, name):
    (problem,) = read(file(name, b""))
    assert isinstance(problem, Problem)


@pytest.mark.parametrize("content", ["\n \n", "<!-- nothing -->"])
def test_a_document_without_text_says_so_or_why(file, content):
    assert len(read(file("a.md", content))) == 1


def test_a_file_that_went_away_is_told(tmp_path):
    (problem,) = read(tmp_path / "gone.md")
    assert problem.message == "No such file or directory. Check that it exists and may be read."


def test_the_end_of_a_name_says_the_reader_in_any_case(tmp_path):
    assert reader_for(tmp_path / "A.PDF").name == "PDF"
    assert reader_for(tmp_path / "a.py") is None


def test_an_unknown_encoding_is_refused():
    with pytest.raises(InvalidInput, match="encoding='klingon': no such encoding"):
        ReadingSettings(encoding="klingon")


def test_readers_whose_libraries_are_missing_name_the_extra():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, check=True)
    said = json.loads(done.stdout)
    assert said["PDF"] == (
        "Reading PDF files needs an optional dependency. "
        "Install it with: pip install 'ekphory[docs]'"
    )
    assert {name for name, message in said.items() if message} == {"PDF", "Word", "HTML"}
    assert [reader.missing_extra() for reader in READERS] == [None] * len(READERS)
