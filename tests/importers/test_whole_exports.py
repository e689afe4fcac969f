"""All that the exports of ChatGPT and Claude hold, imported as their users get them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import docx
import pytest

from documents.making import PdfMaker
from ekphory.importers.run import count_records, import_path

WHOLE = Path(__file__).parent / "whole"


def test_a_claude_export_is_read_whole_and_the_rest_is_named(memory, tmp_path):
    folder = shutil.copytree(WHOLE / "claude", tmp_path / "claude")
    report = import_path(memory, folder)
    found = {record.text: (record.path, record.pool) for record in memory.list()}
    assert found == {
        "The rent is 850 euros.": ("lease.pdf", "reference_library"),
        "It allows pets.": (None, "agent_memory"),
        "All about the house": ("description", "reference_library"),
        "It is a Viessmann.": ("boiler.txt", "reference_library"),
        "Mara runs a bakery.": ("memories", "agent_memory"),
        "The house was built in 1931.": ("memories", "agent_memory"),
    }
    assert report.left_out == {
        "message without text": 1,
        "attached file without text": 1,
        "thinking block": 1,
        "document without text": 1,
        "account without a bio": 1,
    }


@pytest.mark.parametrize("form", ["folder", "archive"])
@pytest.mark.parametrize("conversations", ["[]", None])
def test_projects_and_memories_of_claude_are_read_without_conversations(
    memory, tmp_path, form, conversations
):
    path = shutil.copytree(WHOLE / "claude", tmp_path / "claude")
    (path / "conversations.json").unlink()
    if conversations is not None:
        (path / "conversations.json").write_text(conversations)
    if form == "archive":
        path = Path(shutil.make_archive(str(tmp_path / "export"), "zip", path))
    assert import_path(memory, path).added == 4
    assert "The house was built in 1931." in {record.text for record in memory.list()}


@pytest.fixture
def chatgpt(tmp_path):
    """The archive of a ChatGPT export."""
    return Path(shutil.make_archive(str(tmp_path / "export"), "zip", WHOLE / "chatgpt"))


def test_a_chatgpt_export_is_read_whole(memory, chatgpt):
    import_path(memory, chatgpt)
    found = {record.text: (record.path, record.at.year) for record in memory.list()}
    assert found.pop("Baker, mother of two.")[0] == "bio"
    assert found == {
        "I bake.": ("user_profile", 2026),
        "User keeps a rye starter.": ("memories", 2025),
        "User is allergic to sesame.": ("memories", 2025),
        "Here is my recipe.": (None, 2026),
        "Feed it on Friday. Bake on Saturday.": ("Plan", 2026),
        "User prefers a dark crust.": ("memories", 2026),
        "500 g of rye, 12 g of salt.": ("recipe.md", 2026),
    }


def test_what_is_not_read_of_a_chatgpt_export_is_named(memory, chatgpt):
    assert import_path(memory, chatgpt).left_out == {
        "change of a canvas that cannot be followed": 2,
        "tool message": 2,
        "chat.html": 1,
        "file of another kind (.webp)": 1,
        "attached file of another kind (.png)": 1,
        "attached file that is not in the export": 1,
    }


@pytest.fixture
def attach(tmp_path, monkeypatch):
    """Makes a ChatGPT export with a file attached to its message."""

    def make(name, data):
        shutil.rmtree(tmp_path / "chatgpt", ignore_errors=True)
        folder = shutil.copytree(WHOLE / "chatgpt", tmp_path / "chatgpt")
        conversations = folder / "conversations.json"
        conversations.write_text(conversations.read_text().replace("loaf.png", name))
        (folder / "file-BBB-loaf.png").rename(folder / f"file-BBB-{name}")
        (folder / f"file-BBB-{name}").write_bytes(data)
        return Path(shutil.make_archive(str(tmp_path / "export"), "zip", folder))

    return make


def make_pdf(folder):
    return PdfMaker(folder / "a.pdf").page("The rent is 850 euros.").scan("Page two").save()


def make_word(folder):
    document = docx.Document()
    document.add_heading("Lease", level=1)
    document.add_paragraph("The rent is 850 euros.")
    document.save(folder / "a.docx")
    return folder / "a.docx"


def make_page(folder):
    page = folder / "a.HTML"
    page.write_text("<h1>Lease</h1><script>x()</script><p>The rent is 850 euros.</p>")
    return page


@pytest.mark.parametrize(
    ("make", "text", "lines", "left_out"),
    [
        (make_pdf, "The rent is 850 euros.", "p. 1", "scanned page"),
        (make_word, "Lease\n\nThe rent is 850 euros.", "par. 1-2", None),
        (make_page, "Lease\n\nThe rent is 850 euros.", "1-1", None),
    ],
)
def test_an_attached_document_is_read_by_its_reader(
    memory, attach, tmp_path, make, text, lines, left_out
):
    made = make(tmp_path)
    export = attach(made.name, made.read_bytes())
    report, again = import_path(memory, export), import_path(memory, export)
    (found,) = [record for record in memory.list() if record.path == made.name]
    assert (found.text, found.lines, found.session) == (text, lines, "chatgpt/file-BBB")
    assert (found.pool, found.at.year) == ("reference_library", 2026)
    assert (report.failed, again.added, again.skipped) == (0, 0, report.added + report.skipped)
    assert left_out is None or report.left_out[left_out] == 1


def test_an_attached_document_that_cannot_be_read_is_refused_with_its_place(memory, attach):
    report = import_path(memory, attach("lease.pdf", b"no PDF at all"))
    (failure,) = report.examples
    assert (failure.place, failure.field) == ("export.zip/file-BBB-lease.pdf", "file")
    assert failure.message.startswith("not a readable PDF")


def test_an_attached_document_that_is_read_in_part_takes_the_place_of_nothing(
    memory, attach, tmp_path
):
    pages = PdfMaker(tmp_path / "a.pdf").page("The rent is 850 euros.").page("It is paid early.")
    whole = pages.save().read_bytes()
    broken = whole.replace(b"/Kids [ 3 0 R 4 0 R ]", b"/Kids [ 3 0 R 99 0 R]")
    import_path(memory, attach("a.pdf", whole))
    before = {record.text for record in memory.list()}
    report = import_path(memory, attach("a.pdf", broken))
    assert [one.place for one in report.examples] == ["export.zip/file-BBB-a.pdf (p. 2)"]
    assert (report.updated, report.forgotten) == (0, 0)
    assert {record.text for record in memory.list()} == before | {"The rent is 850 euros."}
    import_path(memory, attach("a.pdf", whole))
    assert {record.text for record in memory.list()} == before


WITHOUT = """
import sys
from pathlib import Path
sys.modules.update(dict.fromkeys(("pypdfium2", "docx", "lxml")))
from ekphory.importers.chats import read_chatgpt
print(*(getattr(found, "reason", "") for found in read_chatgpt(Path(sys.argv[1]))), sep="\\n")
"""


@pytest.mark.parametrize("name", ["lease.pdf", "lease.docx", "lease.html"])
def test_an_attached_document_without_its_extra_is_counted_and_the_extra_named(attach, name):
    command = [sys.executable, "-c", WITHOUT, str(attach(name, b"x"))]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    kind = {".pdf": "PDF", ".docx": "Word", ".html": "HTML"}[Path(name).suffix]
    assert f"attached {kind} (pip install 'ekphory[docs]' reads it)" in said.splitlines()


def test_an_export_is_counted_before_and_a_second_import_adds_nothing(memory, chatgpt):
    first, again = import_path(memory, chatgpt), import_path(memory, chatgpt)
    assert count_records(chatgpt, "chatgpt", None, None) == first.added + first.skipped
    assert (again.added, again.skipped) == (0, first.added + first.skipped)


def test_refused_records_are_listed_once_and_no_more_when_they_were_mended(memory, file):
    path = file("notes.jsonl", '{"text": "one"}\n{"text": ""}\n')
    listed = import_path(memory, path).failures_path
    import_path(memory, path)
    assert listed == path.parent / "ekphory-failed" / "notes.jsonl"
    assert len(listed.read_text().splitlines()) == 1
    path.write_text('{"text": "one"}\n{"text": "two"}\n')
    assert import_path(memory, path).failures_path is None
    assert not listed.exists()
