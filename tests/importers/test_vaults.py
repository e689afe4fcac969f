"""Notes of a Markdown vault, as Obsidian writes them, imported into a real memory."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from ekphory.importers.documents import DocumentOptions, import_documents, watch_documents
from ekphory.importers.run import import_path

BOILER = (Path(__file__).parent / "whole" / "vault" / "Boiler.md").read_text()


@pytest.fixture
def boiler(memory, file):
    """The memories of a note, by their headings."""
    import_documents(memory, file("vault/Boiler.md", BOILER))
    return {record.heading: record for record in memory.list()}


def test_the_words_are_those_that_a_reader_of_the_note_sees(boiler):
    assert boiler["Boiler in the cellar (Heizkessel, furnace)"].text == (
        "# Boiler in the cellar\n\n"
        "The flue was swept by [Otto](People/Otto%20Brand.md#Phone) last week. #repair\n\n"
        "It runs while `[[ -f x ]]` holds in a shell, and costs  euros."
    )
    manual = boiler["Boiler in the cellar (Heizkessel, furnace) > Manual"]
    assert manual.text == "## Manual\n\nManual > Safety rules\n\nRead it in Manual."
    assert manual.lines == "30-34"


def test_front_matter_is_metadata_and_no_memory(boiler):
    metadata = dict(boiler["Boiler in the cellar (Heizkessel, furnace) > Manual"].metadata)
    del metadata["digest"], metadata["last"]
    assert metadata == {
        "title": "The boiler",
        "created": "2024-11-02T08:30",
        "tags": "house | heating",
        "aliases": "Heizkessel | furnace",
        "rating": 4,
        "checked": "12:30",
        # What binds a memory cannot be metadata under its own name.
        "note_project": "Renovation",
        "plan": "Plan of the house",
        "references": "Plan of the house | Manual",
    }


@pytest.mark.parametrize("query", ["boiler", "Heizkessel", "Therme"])
def test_a_note_without_headings_is_found_by_its_file_name_and_by_its_aliases(memory, file, query):
    told = "---\naliases: [Heizkessel, Therme, boiler]\n---\nOtto replaced it.\n"
    import_documents(memory, file("house/Boiler.md", told))
    import_documents(memory, file("house/Roof.md", "Anna replaced it.\n"))
    found = memory.search(query, k=1)[0].memory
    assert (found.path, found.heading) == ("Boiler.md", "Boiler (Heizkessel, Therme)")


@pytest.mark.parametrize("read", [import_documents, import_path])
def test_the_sections_of_a_note_without_a_title_are_found_by_its_file_name(memory, file, read):
    read(memory, file("house/Boiler.md", "## Repairs\n\nOtto replaced it.\n"))
    read(memory, file("roof/Roof.md", "# The roof\n\n## Repairs\n\nAnna replaced it.\n"))
    found = memory.search("repairs of the boiler", k=1)[0].memory
    assert found.heading == "Boiler > Repairs"
    headings = {record.heading for record in memory.list()}
    assert not any(heading.startswith("Roof") for heading in headings)


def test_a_note_of_one_word_or_number_is_kept_under_its_name(memory, file):
    for name, text in (("Pin.md", "4711"), ("Wifi.md", "hunter2"), ("Dots.md", "…")):
        report = import_documents(memory, file(f"vault/{name}", text))
    assert {(record.heading, record.text) for record in memory.list()} == {
        ("Pin", "4711"),
        ("Wifi", "hunter2"),
    }
    assert report.left_out == {"near-empty": 1}


@pytest.fixture
def read(memory, file):
    """Imports a note of its own, and returns the only memory of it."""

    def read(text):
        import_documents(memory, file("a.md", text))
        (record,) = memory.list()
        return record

    return read


def test_tags_under_two_names_are_all_kept(read):
    record = read("---\ntags: [a, b]\ntag: c\n---\nThe fence is green.\n")
    assert record.metadata["tags"] == "a | b | c"


def test_a_line_that_begins_with_a_tag_is_not_a_heading(read):
    assert read("#todo Call the plumber.\n").text == "#todo Call the plumber."


def test_a_heading_with_nothing_but_tags_below_it_is_left_out(memory, file):
    report = import_documents(memory, file("a.md", "# The plumber\n\n#house #repair\n"))
    assert (report.added, report.left_out) == (0, {"heading alone": 1})


def test_links_embeds_and_tags_of_a_passage_are_kept(boiler):
    metadata = boiler["Boiler in the cellar (Heizkessel, furnace)"].metadata
    linked = "Plan of the house | Cellar | Roof | People/Otto Brand | boiler.jpg"
    assert metadata["references"] == linked
    assert metadata["tags"] == "house | heating | repair"


def test_a_link_with_a_title_of_its_own_is_kept(read):
    record = read('See [it](People/Otto.md "The plumber").\n')
    assert record.metadata["references"] == "People/Otto"


def test_comments_and_queries_are_not_stored_and_are_counted(memory, file):
    report = import_documents(memory, file("vault/Boiler.md", BOILER))
    stored = " ".join(record.text for record in memory.list())
    assert not any(word in stored for word in ("ask Otto", "private", "TABLE"))
    assert report.left_out == {"comment": 2, "dataview query": 1}


@pytest.mark.parametrize("opened", ["%%ask Otto", "It costs 850. %% ask Otto", "%%\nask Otto"])
def test_a_comment_that_is_not_closed_is_text_and_hides_nothing(memory, file, opened):
    text = f"The boiler is new. %%private%%\n\n`%%` is code.\n\n{opened}\n\n# Roof\n\nIt leaks."
    report = import_documents(memory, file("a.md", text))
    house, roof = memory.list(order="written")
    assert house.text == f"The boiler is new.\n\n`%%` is code.\n\n{opened}"
    assert roof.text == "# Roof\n\nIt leaks."
    assert report.left_out == {"comment": 1}


def test_percent_signs_in_code_and_after_numbers_are_no_comments(read):
    text = "From 20%% to 30%% of it.\n\n```bat\necho %%a\necho %%b\n```\n"
    assert read(text).text == text.strip()


@pytest.mark.parametrize(
    ("name", "text", "at"),
    [
        ("2026-05-01.md", "We had dinner.", "2026-05-01T00:00"),
        ("2026_05_01 Dinner.txt", "We had dinner.", "2026-05-01T00:00"),
        ("Dinner 2026-05-01.md", "We had dinner.", "2026-05-01T00:00"),
        ("20260501.md", "We had dinner.", "2026-05-01T00:00"),
        ("1.5.2026 dinner.md", "We had dinner.", "2026-05-01T00:00"),
        ("a.md", "---\ndate: 2025-02-03\n---\nIt rained.", "2025-02-03T00:00"),
        ("a.md", '---\ndate: "[[2025-02-03]]"\n---\nIt rained.', "2025-02-03T00:00"),
        ("a.md", "---\nDate: 2025-02-03\n---\nIt rained.", "2025-02-03T00:00"),
        ("a.md", "---\ndate: 24.12.2024\n---\nIt rained.", "2024-12-24T00:00"),
        ("a.md", "---\ndate: Tuesday, 3.2.2025 18:30\n---\nIt rained.", "2025-02-03T18:30"),
        ("a.md", '---\ncreated: "[[3.2.2025]]"\n---\nIt rained.', "2025-02-03T00:00"),
        ("a.md", "---\ndate: 2025/02\ncreated: 3.2.2025\n---\nIt rained.", "2025-02-03T00:00"),
        ("2026-05-01.md", "---\ncreated: 2026-05-02T09:00\n---\nIt rained.", "2026-05-01T00:00"),
        ("a.md", "---\ncreated: 2024-11-02T08:30+01:00\n---\nIt rained.", "2024-11-02T07:30"),
    ],
)
@pytest.mark.parametrize("form", ["documents", "text"])
def test_a_dated_note_has_its_date_and_not_that_of_its_file(memory, file, form, name, text, at):
    import_path(memory, file(name, text), format=form)
    assert [record.at.isoformat() for record in memory.list()] == [f"{at}:00+00:00"]


def test_a_changed_tag_replaces_the_memory_and_a_note_that_was_emptied_is_forgotten(memory, file):
    import_documents(memory, file("a.md", "---\ntags: old\n---\nThe fence is green.\n"))
    path = file("a.md", "---\ntags: new\n---\nThe fence is green.\n")
    assert import_documents(memory, path).forgotten == 1
    assert [record.metadata["tags"] for record in memory.list()] == ["new"]
    assert import_documents(memory, file("a.md", "")).forgotten == 1


@pytest.mark.parametrize("form", ["documents", "text"])
def test_what_is_odd_in_front_matter_is_told_and_the_note_is_read(memory, file, form):
    file("vault/a.md", "---\ndate: 02/01/2025\n---\nThe fence is green.\n")
    file("vault/c.md", "---\nowner: {name: Otto}\n---\nThe roof is red.\n")
    note = file("vault/b.md", "---\ndate: {{date}\n---\nA template is here.\n")
    report = import_path(memory, note.parent, format=form)
    assert (report.added, report.failed) == (3, 0)
    assert report.left_out == {
        "date that cannot be read (write 2025-02-01)": 1,
        "front matter that is not YAML": 1,
        "front matter within front matter": 1,
    }
    assert report.places == {
        "date that cannot be read (write 2025-02-01)": ("a.md",),
        "front matter that is not YAML": ("b.md",),
    }


def test_empty_notes_are_no_errors_and_other_files_are_counted(memory, file):
    for name in ("empty.md", "blank.md", "map.canvas", "a.png", "b.PNG", ".obsidian/app.json"):
        file(f"vault/{name}", "\n\n" if name == "blank.md" else "")
    path = file("vault/person.md", "---\ntags: person\n---\n")
    report = import_documents(memory, path.parent)
    assert (report.added, report.failed) == (0, 0)
    assert report.left_out == {
        "no text in it": 2,
        "file of another kind (.png)": 2,
        "empty file": 1,
        "file of another kind (.canvas)": 1,
    }


def test_paragraphs_of_the_text_format_have_metadata_and_links(memory, file):
    import_path(memory, file("a.md", "---\ntags: x\n---\n\nSee [[Roof|it]].\n"), format="text")
    (record,) = memory.list()
    assert (record.text, record.lines) == ("See it.", "5-5")
    assert dict(record.metadata) == {"tags": "x", "references": "Roof"}


def test_what_gives_no_paragraph_of_the_text_format_is_counted(memory, file):
    file("notes/a.md", "---\ntags: x\n---\n")
    path = file("notes/b.md", "![[boiler.jpg]]\n\nThe flue is clean.\n")
    report = import_path(memory, path.parent, format="text")
    assert (report.added, report.failed) == (1, 0)
    assert report.left_out == {"no text in it": 1, "pictures and tags only": 1}


@pytest.mark.slow
def test_a_watch_follows_renames_of_notes_and_folders(memory, file):
    file("vault/old/a.md", "The fence is green.\n")
    vault = file("vault/b.md", "The door is red.\n").parent
    began, deadline = threading.Event(), time.monotonic() + 30

    def paths():
        return sorted(record.path for record in memory.list())

    def change():
        began.wait(20)
        (vault / "b.md").rename(vault / "c.md")
        (vault / "old").rename(vault / "new")

    changing = threading.Thread(target=change)
    changing.start()
    watch_documents(
        memory,
        vault,
        options=DocumentOptions(gone="forget"),
        on_progress=lambda _: began.set(),
        stopped=lambda: paths() == ["c.md", "new/a.md"] or time.monotonic() > deadline,
    )
    changing.join()
    assert paths() == ["c.md", "new/a.md"]
