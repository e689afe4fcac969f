import zipfile

import docx
import pytest

from ekphory.documents.blocks import Block, Problem, SkippedPart
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.word import LARGEST_UNPACKED, read_word


def read(path):
    return list(read_word(path, ReadingSettings()))


@pytest.fixture
def saved(tmp_path):
    """Saves a document, and returns what is read of it."""

    def save(document):
        document.save(str(tmp_path / "a.docx"))
        return read(tmp_path / "a.docx")

    return save


def problem(path):
    (found,) = read(path)
    assert isinstance(found, Problem)
    return found.message


def test_paragraphs_headings_and_lists_are_counted_from_the_top(saved):
    document = docx.Document()
    said = (("Title", "Handbook"), ("Heading 1", "Leave"), ("Normal", "Thirty days a year."))
    for style, text in (*said, ("List Bullet", "Ask your lead"), ("List Bullet", "Enter it")):
        document.add_paragraph(text, style=style)
    assert saved(document) == [
        Block("Handbook", "heading", 1, 1, level=0, title="Handbook"),
        Block("Leave", "heading", 2, 2, level=1, title="Leave"),
        Block("Thirty days a year.", "paragraph", 3, 3),
        Block("- Ask your lead\n- Enter it", "list", 4, 5),
    ]


def test_a_table_has_a_line_for_each_row(saved):
    document = docx.Document()
    table = document.add_table(rows=2, cols=2)
    for place, text in enumerate(("Country", "Days", "Austria", "25")):
        table.cell(place // 2, place % 2).text = text
    assert saved(document) == [Block("Country | Days\nAustria | 25", "table", 1, 1)]


def test_a_style_derived_from_a_heading_is_a_heading(saved):
    document = docx.Document()
    style = document.styles.add_style("Chapter", docx.enum.style.WD_STYLE_TYPE.PARAGRAPH)
    style.base_style = document.styles["Heading 2"]
    document.add_paragraph("Travel", style="Chapter")
    (heading,) = saved(document)
    assert (heading.kind, heading.level) == ("heading", 2)


def test_an_insertion_that_is_tracked_is_read_and_a_deletion_is_not(saved):
    document = docx.Document()
    paragraph = document.add_paragraph("The rent is ")
    runs = {"ins": "<w:r><w:t>900</w:t></w:r>", "del": "<w:r><w:delText>850</w:delText></w:r>"}
    inserted, deleted = (
        docx.oxml.parse_xml(f'<w:{tag} xmlns:w="{paragraph._p.nsmap["w"]}">{run}</w:{tag}>')
        for tag, run in runs.items()
    )
    paragraph._p.extend([deleted, inserted])
    assert [block.text for block in saved(document)] == ["The rent is 900"]


def test_the_lines_of_a_table_of_contents_are_left_out(saved):
    document = docx.Document()
    style = document.styles.add_style("toc 1", docx.enum.style.WD_STYLE_TYPE.PARAGRAPH)
    document.add_paragraph("Leave ..... 3", style=style)
    assert saved(document) == [SkippedPart("table of contents")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"just words", "not a readable .docx file (File is not a zip file)"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + b"x", "protected by a password, or an old .doc file"),
    ],
)
def test_what_is_no_word_file_is_told(file, content, message):
    assert problem(file("a.docx", content)).startswith(message)


def test_an_archive_of_something_else_is_told(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("readme.txt", "no document")
    assert problem(tmp_path / "a.docx").startswith("not a readable .docx file (KeyError")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    with (
        zipfile.ZipFile(tmp_path / "a.docx", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("word/document.xml", "w") as member,
    ):
        for _ in range(LARGEST_UNPACKED // 2**20 + 1):
            member.write(bytes(2**20))
    told = "unpacked it has 257 MB, more than the 256 MB that are read. Split it."
    assert problem(tmp_path / "a.docx") == told
