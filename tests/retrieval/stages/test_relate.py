"""Notes lend along the links between them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.retrieval.states import records, rows, state_of, with_candidates

from ekphory.importers.documents import import_documents
from ekphory.memory import Memory
from ekphory.retrieval.stages.relate import FollowLinks, is_called, links_of


def notes(**references):
    """Records of notes by these names, each with what it links to."""
    return [
        replace(record, path=f"vault/{name}.md", metadata={"references": links} if links else {})
        for record, (name, links) in zip(records(*references), references.items(), strict=True)
    ]


def follow(*found, probabilities):
    """Probabilities by row after the stage."""
    state = FollowLinks().run(with_candidates(state_of(*found), probabilities))
    values = state.candidates.scores["probability"].tolist()
    return dict(zip(rows(state), values, strict=True))


def test_a_note_gets_a_tenth_of_the_probability_of_the_one_that_links_to_it():
    after = follow(*notes(film="Director", other="", director=""), probabilities=[0.8, 0.1, 0.05])
    assert list(after) == [0, 2, 1]
    assert after == pytest.approx({0: 0.805, 2: 0.13, 1: 0.1})


def test_a_note_gets_it_from_one_that_it_links_to_as_well():
    after = follow(*notes(film="Director", director=""), probabilities=[0.1, 0.8])
    assert after == pytest.approx({1: 0.81, 0: 0.18})


def test_what_is_lent_is_divided_among_all_that_get_it():
    after = follow(*notes(a="b | c", b="", c=""), probabilities=[0.8, 0.2, 0.1])
    assert after == pytest.approx({0: 0.82, 1: 0.24, 2: 0.14})


def test_without_links_nothing_changes():
    state = with_candidates(state_of(*notes(a="", b="")), [0.8, 0.2])
    after = FollowLinks().run(state)
    assert (rows(after), after.notes) == ([0, 1], {"lent": 0})
    assert after.candidates.scores["probability"].tolist() == pytest.approx([0.8, 0.2])


@pytest.mark.parametrize(
    ("references", "links"),
    [
        ("Plan of the house | Manual", ("plan of the house", "manual")),
        ("../ablation", ("ablation",)),
    ],
)
def test_links_are_read_without_what_leads_up_to_them(references, links):
    assert links_of(notes(a=references)[0]) == links


@pytest.mark.parametrize(
    ("link", "called"), [("b", True), ("vault/b", True), ("lt/b", False), ("ab", False)]
)
def test_a_link_means_a_note_by_its_name_or_the_end_of_its_path(link, called):
    assert is_called(notes(b="")[0], link) is called


@pytest.fixture
def vault(tmp_path):
    """A memory with a film, its director, who shares no word with it, and other notes."""
    folder = tmp_path / "vault" / "people"
    folder.mkdir(parents=True)
    film = "# Grey Harbour\n\nGrey Harbour is a film of 1931, made by [[Ada Quill]].\n"
    (tmp_path / "vault" / "Grey Harbour.md").write_text(film)
    (folder / "Ada Quill.md").write_text("# Ada Quill\n\nBorn in Lund, she kept bees.\n")
    for number in range(40):
        text = f"# Film {number}\n\nThe film {number} was shown in a harbour of the year.\n"
        (tmp_path / "vault" / f"Film {number}.md").write_text(text)
    with Memory(tmp_path / "store") as memory:
        import_documents(memory, tmp_path / "vault")
        yield memory


def paths(result):
    return [hit.memory.path for hit in result.hits]


def test_a_search_finds_the_note_that_the_best_one_links_to(vault):
    found = paths(vault.search("who made the film Grey Harbour?", preset="balanced"))
    assert found[:2] == ["Grey Harbour.md", "people/Ada Quill.md"]


def test_a_note_that_a_filter_leaves_out_is_not_found_through_a_link(vault):
    found = vault.search("who made the film Grey Harbour?", filter="path != 'people/Ada Quill.md'")
    assert "people/Ada Quill.md" not in paths(found)
