import numpy as np
import pytest

from documents.making import PdfMaker, passages_of, read
from ekphory.documents.blocks import NoteFacts, Problem, SkippedPart
from ekphory.documents.passages import Passage
from ekphory.documents.settings import OwnPageReader, ReadingSettings
from ekphory.errors import ServiceError

FULL = "A line that fills the page from its left edge to the right one, as running text does"


@pytest.fixture
def pdf(tmp_path):
    return PdfMaker(tmp_path / "a.pdf")


class NotingReader:
    """Reads every page as the same words, and notes what it was shown."""

    name = "noting"

    def __init__(self):
        self.pictures = []

    def read(self, picture):
        self.pictures.append(picture)
        return "The deposit is returned\nwithin six weeks."


class FailingReader:
    name = "failing"

    def read(self, _picture):
        raise ServiceError("The service is down. Start it.")


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        # Lines that fill the page are joined to sentences.
        ([(FULL, "and ends here.")], [(1, 1, f"{FULL} and ends here.")]),
        # A list keeps its lines.
        ([(f"{FULL}.", "• one of two", "• two")], [(1, 1, f"{FULL}.\n\n• one of two\n• two")]),
        # A sentence goes on over the end of a page.
        ([(FULL,), ("goes on on the next.",)], [(1, 2, f"{FULL} goes on on the next.")]),
    ],
)
def test_a_passage_is_joined_of_lines_and_names_its_pages(pdf, pages, expected):
    for lines in pages:
        pdf.page(*lines)
    found = passages_of(pdf.save())
    assert [(passage.first, passage.last, passage.text) for passage in found] == expected


def test_larger_letters_are_headings_by_their_size(pdf):
    path = pdf.page(("Handbook", 22), ("Leave", 15), FULL + ".", ("Travel", 15), FULL + ".").save()
    headings = [passage.section.headings for passage in passages_of(path)]
    assert headings == [("Handbook", "Leave"), ("Handbook", "Travel")]


def test_bookmarks_are_headings_where_the_document_has_them(pdf):
    pdf.page("Leave", FULL + ".", bookmarks=[(0, "Handbook"), (1, "Leave")])
    (passage,) = passages_of(pdf.page("And more about it is said here.").save())
    assert passage.section.headings == ("Handbook", "Leave")
    assert passage.text.startswith(f"Leave\n\n{FULL}.")


def test_running_titles_and_page_numbers_are_left_out(pdf):
    for number in range(1, 5):
        pdf.page(f"{FULL} {number}.", header="ACME manual", footer=f"Page {number} of 4")
    found = read(pdf.save())
    assert found.count(SkippedPart("running title or page number")) == 8
    assert "ACME" not in " ".join(str(one) for one in found)


def test_a_chapter_in_large_letters_at_the_top_is_a_heading_and_no_running_title(pdf):
    for number in range(1, 5):
        pdf.page(FULL + ".", header="")
        pdf._draw(f"Chapter {number}", 20, 800)
    headings = [passage.section.headings for passage in passages_of(pdf.page(FULL).save())]
    assert ("Chapter 2",) in headings


def test_a_page_that_is_a_picture_is_given_to_the_page_reader(pdf):
    reader = NotingReader()
    pdf.page("The first page is text.").scan("words")
    # So is one whose letters are drawn as lines; one with a line of text and a drawing is not.
    for lines in ((), ("Part two",)):
        pdf._canvas.line(100, 700, 300, 720)
        pdf.page(*lines)
    # A page of any size is shown in bounded size.
    pdf._canvas.setPageSize((14_400, 14_400))
    found = passages_of(pdf.scan("words").save(), ReadingSettings(page_reader=reader))
    text = "\n".join(one.text for one in found)
    assert (text.count("within six weeks."), "Part two" in text) == (3, True)
    paper, drawn, poster = reader.pictures
    assert (paper.shape, paper.dtype, drawn.shape) == ((2339, 1653, 3), np.uint8, paper.shape)
    assert max(poster.shape) == 4_000


def test_a_page_reader_that_fails_is_told_with_the_page_and_the_others_are_read(pdf, tmp_path):
    path = pdf.page("The first page is text.").scan("words").save()
    found = read(path, ReadingSettings(page_reader=FailingReader()))
    told = [one for one in found if not isinstance(one, NoteFacts)]
    problem, passage = sorted(told, key=lambda one: isinstance(one, Passage))
    assert problem == Problem("The service is down. Start it.", 2)
    assert passage.text == "The first page is text."
    # Without a page reader a scanned page is left out.
    assert SkippedPart("scanned page") in read(path)
    # A password is told.
    locked = PdfMaker(tmp_path / "b.pdf", password="secret").page("hidden").save()
    assert read(locked) == [Problem("the PDF is protected by a password. Save it without one.")]


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7\nnonsense", b"just words"])
def test_a_broken_pdf_is_told(file, content):
    (problem,) = read(file("a.pdf", content))
    assert problem.message.startswith("not a readable PDF (Failed to load document")


def test_two_hundred_pages_are_read(pdf):
    for number in range(200):
        pdf.page(*(f"{FULL} {number}-{line}." for line in range(5)))
    found = passages_of(pdf.save())
    assert (found[0].first, found[-1].last) == (1, 200)


@pytest.mark.long
def test_the_own_models_read_a_scanned_page_without_a_network(pdf):
    path = pdf.scan("Lease agreement", "The tenant pays 850 euros each month.").save()
    (passage,) = passages_of(path, ReadingSettings(page_reader=OwnPageReader()))
    assert passage.text == "Lease agreement\nThe tenant pays 850 euros each month."
