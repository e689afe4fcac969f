from ekphory.documents.settings import ReadingSettings
from ekphory.documents.text import paragraphs, read_restructured_text


def test_blank_lines_part_paragraphs():
    first, second = paragraphs("One line.\nAnd another.\n\n \nSecond.\n")
    assert (first.text, first.first, first.last) == ("One line.\nAnd another.", 1, 2)
    assert (second.text, second.first, second.last) == ("Second.", 5, 5)


def test_a_text_of_blank_lines_has_no_paragraph():
    assert list(paragraphs("\n \n\t\n")) == []


def rst(file, text):
    return list(read_restructured_text(file("a.rst", text), ReadingSettings()))


def test_underlined_titles_are_headings_in_the_order_of_their_styles(file):
    found = rst(file, "====\nBook\n====\n\nIntro.\n\nPart\n----\nText.\n\nOther\n-----\n")
    assert [(block.level, block.title) for block in found if block.kind == "heading"] == [
        (1, "Book"),
        (2, "Part"),
        (2, "Other"),
    ]
    assert [(block.text, block.first) for block in found if block.kind == "paragraph"] == [
        ("Intro.", 5),
        ("Text.", 9),
    ]


def test_a_line_shorter_than_its_title_underlines_nothing(file):
    (block,) = rst(file, "A long sentence.\n---\n")
    assert block.kind == "paragraph"
