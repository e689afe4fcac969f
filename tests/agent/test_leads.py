"""Which names of a memory may be what a step looks for."""

import pytest
from tests.prompting.hits import hit

from ekphory.agent.local_chain import Rated, aboutness, leads
from ekphory.agent.relations import meaning_words, relation


def best(text, entity, word):
    found = leads(
        [Rated(hit(text), 1.0)],
        entity=entity,
        relation=relation(word),
        known=meaning_words(entity),
    )
    return found[0].name


@pytest.mark.parametrize(
    ("text", "entity", "word", "name"),
    [
        ("Night Ferry is a 1938 drama directed by Erich Waschneck, starring Kirsten Heiberg.",
         "Night Ferry", "director", "Erich Waschneck"),
        ("Oh My is a song by English singer Tulisa Vance.", "Oh My", "performer", "Tulisa Vance"),
        ("Kestrel builds pumps in Zeist; its CEO is Annelies Brandsma.", "Kestrel", "ceo",
         "Annelies Brandsma"),
        ("Annelies brought her husband, Joost Terpstra, and we sat down.", "Annelies Brandsma",
         "husband", "Joost Terpstra"),
        ("Johanna was the daughter of Philipp Graf and Sibylle Baden.", "Johanna", "mother",
         "Sibylle Baden"),
        ("Johanna was the daughter of Philipp Graf and Sibylle Baden.", "Johanna", "father",
         "Philipp Graf"),
        ("Deep Blue was co-written by Kanye West. West played it in Paris.", "Deep Blue", "writer",
         "Kanye West"),
    ],
)  # fmt: skip
def test_the_name_beside_the_relation_comes_first(text, entity, word, name):
    assert best(text, entity, word) == name


def test_a_memory_about_the_entity_counts_more_than_one_that_names_it():
    about = aboutness("Night Ferry is a film by Ada Holm.", "Night Ferry")
    names = aboutness("Before she left for good, Ada Holm saw Night Ferry.", "Night Ferry")
    assert about > names > aboutness("The ferry was late.", "Night Ferry") > 0


def test_words_of_the_question_are_no_lead():
    found = leads(
        [Rated(hit("Otto met Ida."), 1.0)],
        entity="Otto",
        relation=relation("boss"),
        known=frozenset({"otto", "ida"}),
    )
    assert found == []
