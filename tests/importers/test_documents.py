"""Documents imported into a real memory: what is added, what stays, what goes."""

from __future__ import annotations

import os
import re
import threading
import time
from datetime import datetime

import docx
import pytest

from documents.making import PdfMaker
from ekphory.documents.blocks import Exclusion, join_passages
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.text import LARGEST_TEXT
from ekphory.documents.tree import DocumentFile, find_reader
from ekphory.errors import InvalidInput, ScopeError
from ekphory.importers.documents import (
    DocumentOptions,
    ImportedDocument,
    compute_digest,
    import_documents,
    read_records,
    watch_documents,
)
from ekphory.importers.report import ImportInterrupted
from ekphory.importers.run import import_path

GUIDE = "# House\n\n## Cellar\n\nThe boiler was repaired in May.\n\n## Roof\n\nIt is new.\n"
PRUNE = DocumentOptions(gone="forget")


@pytest.fixture
def house(file):
    """A folder with a guide and a note."""
    file("house/sub/note.txt", "Keys hang in the hall.\n")
    return file("house/guide.md", GUIDE).parent


def texts(memory):
    return [record.text for record in memory.list(order="written")]


def test_a_passage_knows_where_it_came_from(memory, house):
    import_documents(memory, house)
    (cellar,) = memory.list(filter="heading = 'House > Cellar'")
    assert cellar.text == "## Cellar\n\nThe boiler was repaired in May."
    assert (cellar.path, cellar.lines, cellar.source) == ("guide.md", "3-5", "document")
    assert (cellar.pool, cellar.type) == ("reference_library", "semantic")
    assert cellar.session == (house / "guide.md").as_posix()


def test_a_document_is_of_the_date_that_it_states_and_else_of_its_files(memory, file, tmp_path):
    page = '<meta property="article:published_time" content="2025-02-03T04:05:06Z"><p>It is new.'
    file("house/page.html", page)
    paper = docx.Document()
    paper.add_paragraph("The boiler was repaired.")
    undated = file("house/plain.docx", "")
    paper.save(undated)
    paper.core_properties.created = datetime(2024, 5, 6)
    paper.save(tmp_path / "house" / "dated.docx")
    plan = PdfMaker(tmp_path / "house" / "plan.pdf").page("Keys hang in the hall.").save()
    written = re.sub(rb"D:\d{14}\+00'00'", b"D:20230405060708+02'00'", plan.read_bytes())
    plan.write_bytes(written.replace(b"/ModDate (D:20230405060708+02'00')", b""))
    for path in (tmp_path / "house").iterdir():
        os.utime(path, (1_767_225_600, 1_767_225_600))  # 1 January 2026
    import_documents(memory, tmp_path / "house")
    assert {record.path: record.at.isoformat() for record in memory.list()} == {
        "dated.docx": "2024-05-06T00:00:00+00:00",
        "page.html": "2025-02-03T04:05:06+00:00",
        "plain.docx": "2026-01-01T00:00:00+00:00",
        "plan.pdf": "2023-04-05T04:07:08+00:00",
    }


POOLS = {
    "agent_mistakes": ("mistakes.md", "notes/Mistakes/deploy.md", "mistakes/tools.txt"),
    "agent_tools": ("TOOLS.md", "tools-of-ben.txt"),
    "reference_library": ("rules.md", "my mistakes.md", "tools/saw.md", "mistakes/build.html"),
}


@pytest.mark.parametrize(
    ("name", "pool"), [(name, pool) for pool, names in POOLS.items() for name in names]
)
def test_a_files_name_or_folder_says_which_pool_it_belongs_to(memory, file, tmp_path, name, pool):
    file(f"docs/{name}", "<p>The deploy of May lost the index.</p>")
    import_documents(memory, tmp_path / "docs")
    assert [record.pool for record in memory.list()] == [pool]


def test_a_section_is_found_by_the_words_of_the_headings_above_it(memory, file):
    roof = "It was laid in copper. " * 30 + "\n\n" + "Rain runs to the east. " * 30
    file("books/a.md", f"# Lighthouse\n\n## Cupola\n\n{roof}\n")
    file("books/b.md", "# Barn\n\n## Door\n\nIt is made of oak.\n")
    import_documents(memory, file("books/c.md", "# Mill\n\nIt stands by the river.\n").parent)
    found = memory.search("what is the lighthouse?", k=2)
    assert [hit.memory.heading for hit in found] == ["Lighthouse > Cupola"] * 2
    assert not any("lighthouse" in hit.text.lower() for hit in found)


def test_a_page_of_a_pdf_is_named(memory, tmp_path):
    PdfMaker(tmp_path / "a.pdf").page(("Lease", 20), "The rent is 850 euros a month.").save()
    import_documents(memory, tmp_path / "a.pdf")
    (record,) = memory.list()
    assert (record.path, record.lines, record.heading) == ("a.pdf", "p. 1", "Lease")


def test_the_children_of_a_section_share_its_id_and_give_its_text(memory, file):
    sentences = (f"Sentence {n} about the boiler. " * 12 for n in range(5))
    section = "\n\n".join(["# Boiler", *sentences])
    import_documents(memory, file("a.md", section))
    records = memory.list()
    assert len(records) > 2
    assert len({record.parent_id for record in records}) == 1
    assert join_passages(records).split() == section.split()


def test_a_second_import_adds_nothing_and_one_of_a_file_alone_neither(memory, house):
    seen, counted = [], []
    first = import_documents(memory, house, on_progress=seen.append)
    again = import_path(memory, house, on_progress=counted.append)
    assert [(now.done, now.total) for now in seen] == [(0, 2), (1, 2), (2, 2)]
    assert (first.added, first.skipped) == (3, 0)
    assert (again.added, again.skipped, again.forgotten, counted[-1].skipped) == (0, 3, 0, 3)
    # A file alone and in its folder is the same document.
    assert import_documents(memory, house / "guide.md").skipped == 2
    # A file that was only touched stays as it is.
    before = memory.list()
    os.utime(house / "guide.md", (1_900_000_000, 1_900_000_000))
    assert import_documents(memory, house).added == 0
    assert memory.list() == before
    # Another pool moves the passages there.
    import_documents(memory, house, options=DocumentOptions(pool="reference_code"))
    assert {record.pool for record in memory.list()} == {"reference_code"}
    assert memory.count() == 3


def test_what_changed_replaces_what_was_there_and_the_rest_stays(memory, house):
    import_documents(memory, house)
    kept = {record.id for record in memory.list(filter="heading = 'House > Roof'")}
    (house / "guide.md").write_text(GUIDE.replace("repaired in May", "replaced in June"))
    report = import_documents(memory, house)
    assert (report.added, report.skipped, report.forgotten) == (1, 2, 1)
    assert "## Cellar\n\nThe boiler was replaced in June." in texts(memory)
    assert not any("May" in text for text in texts(memory))
    assert kept < {record.id for record in memory.list()}
    # A document that is gone is kept, unless it is asked to go.
    (house / "guide.md").unlink()
    assert import_documents(memory, house).forgotten == 0
    assert import_documents(memory, house, options=PRUNE).forgotten == 2
    assert texts(memory) == ["Keys hang in the hall."]


def test_a_passage_that_moved_has_its_new_lines(memory, house):
    import_documents(memory, house)
    (house / "guide.md").write_text("# Foreword\n\nRead it all.\n\n" + GUIDE)
    import_documents(memory, house)
    assert [record.lines for record in memory.list(filter="heading = 'House > Roof'")] == ["11-13"]
    assert memory.count() == 4
    # A document that broke loses nothing.
    (house / "guide.md").write_bytes(b"# House\n\ncaf\xe9\n")
    report = import_documents(memory, house, options=PRUNE)
    assert (report.forgotten, report.failed, memory.count()) == (0, 1, 4)


def test_files_of_the_same_name_in_two_folders_do_not_replace_each_other(memory, file):
    for name in ("one", "two"):
        import_documents(memory, file(f"{name}/README.md", f"House {name} is old."))
    assert sorted(texts(memory)) == ["House one is old.", "House two is old."]


def test_a_name_of_its_own_lets_a_folder_move(memory, house, tmp_path):
    named = DocumentOptions(name="house manual")
    import_documents(memory, house, options=named)
    moved = house.rename(tmp_path / "elsewhere")
    assert import_documents(memory, moved, options=named).added == 0
    assert memory.list(filter="path = 'guide.md'")[0].session == "house manual/guide.md"


def test_pruning_a_folder_touches_no_other_one(memory, house, file):
    import_documents(memory, file("house2/a.md", "Of another house."))
    memory.add("said by a user", session=f"{house.as_posix()}/gone.md")
    import_documents(memory, house)
    (house.parent / "house2" / "a.md").unlink()
    assert import_documents(memory, house, options=PRUNE).forgotten == 0


def test_what_cannot_be_read_is_listed_and_the_others_are_imported(memory, house, file):
    file("house/broken.pdf", b"%PDF-1.7\nnonsense")
    file("house/empty.md", "")
    file("house/binary.txt", b"\x00\x01\x02")
    with (house / "dump.txt").open("wb") as stream:
        stream.truncate(LARGEST_TEXT + 2**20)
    report = import_documents(memory, house)
    assert (report.added, report.failed) == (3, 3)
    assert report.failures_path == house.parent / "ekphory-failed" / "house.jsonl"
    told = {one.place: one.message for one in report.examples}
    assert list(told) == ["binary.txt", "broken.pdf", "dump.txt"]
    assert told["dump.txt"] == "65 MB is more than the 64 MB that are read. Split it."


def test_what_was_left_out_is_counted_by_reason(memory, file):
    report = import_documents(memory, file("a.rst", "7\n\nA\n===\n\nB\n===\n\nThe boiler is on.\n"))
    assert report.left_out == {"page number": 1, "heading alone": 1}


def interrupt(memory, path, done):
    """Interrupt an import when it has done so much; return how many memories it has added."""

    def stop(now):
        if now.done == done:
            raise KeyboardInterrupt

    with pytest.raises(ImportInterrupted, match="Run the same import again") as interrupted:
        import_documents(memory, path, on_progress=stop)
    return interrupted.value.report.added


def test_an_interrupted_import_keeps_what_was_written_and_goes_on_later(memory, file):
    for number in range(300):
        path = file(f"notes/{number:03}.txt", f"The boiler number {number} is on.")
    assert interrupt(memory, path.parent, 280) == memory.count() == 256
    again = import_documents(memory, path.parent)
    assert (again.added, again.skipped) == (44, 256)


def test_nothing_old_is_forgotten_before_the_new_is_written(memory, house):
    import_documents(memory, house)
    (house / "guide.md").write_text(GUIDE.replace("repaired", "replaced"))
    interrupt(memory, house, 1)
    assert "## Cellar\n\nThe boiler was repaired in May." in texts(memory)
    again = import_documents(memory, house)
    assert (again.added, again.forgotten, memory.count()) == (1, 1, 3)


def test_each_scope_replaces_its_own_alone(open_memory, house):
    ann, bob = open_memory(project="p", user="ann"), open_memory(project="p", user="bob")
    everyone = open_memory()
    import_documents(ann, house)
    import_documents(bob, house)
    import_documents(everyone, house)
    (house / "guide.md").write_text("# Empty\n\nNothing is here now.\n")
    assert import_documents(bob, house).forgotten == 2
    assert import_documents(everyone, house).forgotten == 2
    assert len([text for text in texts(ann) if "boiler" in text]) == 1


def test_a_bound_session_is_refused_before_anything_is_read(open_memory, house):
    with pytest.raises(ScopeError, match="each document is a session of its own"):
        import_documents(open_memory(session="monday"), house)


@pytest.mark.parametrize(
    ("options", "field"),
    [(DocumentOptions(pool="no such pool!"), "pool"), (DocumentOptions(name=" "), "name")],
)
def test_an_option_that_cannot_be_used_is_refused_once(memory, house, options, field):
    with pytest.raises(InvalidInput, match=f"^{field}="):
        import_documents(memory, house, options=options)
    assert not house.with_name("ekphory-failed").exists()


def test_a_name_that_is_not_utf_8_is_told(memory, house):
    try:
        (house / os.fsdecode(b"caf\xe9.md")).write_text("The menu.")
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    (failure,) = import_documents(memory, house).examples
    assert failure.message == "its name is not UTF-8. Rename it."


@pytest.mark.slow
def test_a_watch_imports_at_once_and_follows_changes(memory, house):
    first_import, deadline = threading.Event(), time.monotonic() + 30
    options = DocumentOptions(gone="forget", exclude=Exclusion(("*.draft.md",)))
    expected = {"## Cellar\n\nThe boiler was replaced in May.", "## Roof\n\nIt is new."}

    def tell(now):
        if now.done == now.total:
            first_import.set()

    def is_over():
        return set(texts(memory)) == expected or time.monotonic() > deadline

    def change():
        first_import.wait(20)
        (house / "plan.draft.md").write_text("Excluded.\n")
        (house / "guide.md").write_text(GUIDE.replace("repaired", "replaced"))
        (house / "sub" / "note.txt").unlink()

    changing = threading.Thread(target=change)
    changing.start()
    report = watch_documents(memory, house, options=options, on_progress=tell, stopped=is_over)
    changing.join()
    assert set(texts(memory)) == expected
    assert (report.added, report.forgotten) == (4, 2)


@pytest.mark.parametrize("follow", [import_documents, watch_documents])
def test_a_folder_that_is_not_there_is_refused_and_nothing_of_it_forgotten(memory, house, follow):
    import_documents(memory, house)
    house.rename(house.with_name("away"))
    with pytest.raises(InvalidInput, match="no such file or folder"):
        follow(memory, house, options=DocumentOptions(gone="forget"))
    assert memory.count() == 3


def test_a_folder_whose_documents_are_all_gone_is_emptied(memory, house):
    import_documents(memory, house)
    for path in (house / "guide.md", house / "sub" / "note.txt"):
        path.unlink()
    report = import_documents(memory, house, options=DocumentOptions(gone="forget"))
    assert (report.forgotten, memory.count()) == (3, 0)


def test_a_document_that_is_changed_while_it_is_read_and_back_is_read_again(memory, file):
    path, settings = file("house/plan.txt", "The boiler is old.\n"), ReadingSettings()
    listed = DocumentFile(path, "plan.txt")
    document = ImportedDocument(listed, find_reader(path), path.as_posix(), "reference_library")
    digest = compute_digest(document, settings)
    path.write_text("The boiler is new.\n")
    memory.add_many([found.fields for found in read_records(document, settings, digest)])
    assert texts(memory) == ["The boiler is new."]
    path.write_text("The boiler is old.\n")
    import_documents(memory, path.parent, options=DocumentOptions(page_reader=None))
    assert texts(memory) == ["The boiler is old."]


def test_a_document_in_whose_place_a_folder_is_now_is_gone(memory, house, file):
    import_documents(memory, house, options=PRUNE)
    (house / "guide.md").unlink()
    file("house/guide.md/roof.md", "It is old.\n")
    report = import_documents(memory, house, options=PRUNE)
    assert (report.added, report.forgotten) == (1, 2)
    assert texts(memory) == ["Keys hang in the hall.", "It is old."]


@pytest.mark.slow
def test_a_folder_that_is_replaced_while_it_is_watched_is_followed(memory, house):
    deadline, told = time.monotonic() + 30, []

    def tell(now):
        if now.done == now.total:
            told.append((now.report.failed, sorted(texts(memory))))
            if len(told) == 1:
                house.rename(house.with_name("away"))
            if len(told) == 2:
                house.mkdir()
                (house / "new.md").write_text("The roof is new.\n")

    def is_over():
        return len(told) >= 3 or time.monotonic() > deadline

    options = DocumentOptions(gone="forget")
    watch_documents(memory, house, options=options, on_progress=tell, stopped=is_over)
    before = told[0][1]
    assert len(before) == 3
    assert told == [(0, before), (1, before), (0, ["The roof is new."])]


@pytest.mark.slow
def test_a_document_that_is_mended_while_it_is_watched_is_no_longer_listed(memory, house, file):
    for name in ("broken.md", "binary.md"):
        file(f"house/{name}", b"caf\xe9 \0")
    deadline, seen = time.monotonic() + 30, []
    listed = house.parent / "ekphory-failed" / "house.jsonl"

    def tell(now):
        if now.done == now.total:
            seen.append((now.report.failed, now.report.failures_path, listed.exists()))
            mended = ("broken.md", "binary.md")[len(seen) - 1 : len(seen)]
            for name in mended:
                (house / name).write_text("The menu is new.\n")

    def is_over():
        return len(seen) == 3 or time.monotonic() > deadline

    watch_documents(memory, house, on_progress=tell, stopped=is_over)
    assert seen == [(2, listed, True), (1, listed, True), (0, None, False)]
