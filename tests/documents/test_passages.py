from ekphory.documents.blocks import Block, LeftOut, Problem, estimate_tokens
from ekphory.documents.passages import PASSAGE_TOKENS, WHOLE_TOKENS, passages
from ekphory.documents.text import blocks_of

SENTENCE = "The boiler in the cellar was repaired in May by Anna. "


def of(text):
    return list(passages(blocks_of(text)))


def test_a_section_begins_with_its_heading_and_names_all_above_it():
    (first, second) = of("# House\n\nIt is old.\n\n## Cellar\n\nIt is dry.\n")
    assert (first.text, first.section.headings) == ("# House\n\nIt is old.", ("House",))
    assert (second.text, second.section.headings) == (
        "## Cellar\n\nIt is dry.",
        ("House", "Cellar"),
    )
    assert (second.first, second.last) == (5, 7)


def test_a_heading_closes_all_sections_of_its_level_and_below():
    found = of("# A\n\na\n\n### B\n\nb\n\n## C\n\nc\n")
    assert [one.section.headings for one in found] == [("A",), ("A", "B"), ("A", "C")]


def test_sections_with_the_same_titles_are_told_apart():
    first, second = of("# Log\n\nfirst day\n\n# Log\n\nsecond day\n")
    assert (first.section.occurrence, second.section.occurrence) == (0, 1)


def test_paragraphs_are_gathered_up_to_the_limit():
    found = of("\n\n".join([SENTENCE * 4] * 9))
    assert len(found) == 3
    assert all(100 < estimate_tokens(one.text) <= PASSAGE_TOKENS for one in found)


def test_a_long_paragraph_is_cut_after_a_sentence_without_overlap():
    found = of(SENTENCE * 40)
    assert all(one.text.endswith("Anna.") for one in found)
    assert " ".join(one.text for one in found) == (SENTENCE * 40).strip()


def test_a_fence_longer_than_a_passage_is_kept_whole():
    code = "```\n" + "print('the boiler is on')\n" * 60 + "```"
    assert PASSAGE_TOKENS < estimate_tokens(code) < WHOLE_TOKENS
    (found,) = of(code)
    assert found.text == code


def test_a_fence_beyond_the_bound_is_cut_at_its_lines():
    found = of("```\n" + "print('the boiler is on')\n" * 200 + "```")
    assert len(found) > 4
    assert all(one.text.endswith(("on')", "```")) for one in found)


def test_a_short_rest_of_a_section_joins_the_passage_before():
    (found,) = of(SENTENCE * 14 + "\n\nThat is all.")
    assert found.text.endswith("Anna.\n\nThat is all.")


def test_a_rest_of_another_section_does_not():
    assert len(of("# A\n\n" + SENTENCE * 14 + "\n\n# B\n\nThat is all.")) == 2


def test_what_is_no_block_is_passed_on_in_its_place():
    blocks = [Block("one", "paragraph", 1, 1), Problem("broken", 2), LeftOut("navigation")]
    assert [type(found) for found in passages(blocks)] == [Problem, LeftOut, type(of("x")[0])]


def test_a_passage_says_what_it_is_made_of():
    (found,) = of("# A\n\ntext\n\n- item\n")
    assert found.kinds == {"heading", "paragraph", "list"}


def test_a_title_that_is_a_whole_paragraph_is_cut_short():
    (found,) = of("# " + "word " * 100 + "\n\ntext\n")
    assert len(found.section.headings[0]) == 200
