import pytest

from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import NotThere
from ekphory.errors import InvalidInput


@pytest.fixture
def keys(database):
    return AccessKeys(database)


def test_a_key_is_recognised_with_what_it_is_bound_to(keys):
    made = keys.create(name="app", org="home", project="chat", rights="read")
    found = keys.recognise(made.text)
    assert (found.id, found.name) == (made.key.id, "app")
    assert (found.org, found.project, found.rights) == ("home", "chat", "read")


def test_a_key_is_not_shown_and_the_catalog_keeps_no_byte_of_it(keys, database, path):
    made = keys.create()
    assert made.text not in repr(made) + repr(keys.all())
    secret = made.text.split("_", 2)[2].encode()  # it may hold underscores itself
    database.close()
    assert not any(secret in file.read_bytes() for file in path.parent.iterdir())


def test_a_text_that_is_nearly_a_key_is_none(keys):
    text = keys.create().text
    others = ("", "ek_", "ek__", "ek_é_x", "sk-other", "ek_' OR 1=1 --_x")
    for wrong in (text[:-1] + "~", text + "x", text[3:], *others):
        assert keys.recognise(wrong) is None, wrong


def test_a_revoked_key_is_worth_nothing(keys):
    made = keys.create()
    keys.revoke(made.key.id)
    assert keys.recognise(made.text) is None
    assert keys.any_in_use() is False
    assert keys.all()[0].revoked_at is not None
    with pytest.raises(NotThere, match="no key 'abc'"):
        keys.revoke("abc")


@pytest.mark.parametrize(
    "wrong",
    [
        {"rights": "all"},
        {"project": "chat"},
        {"org": ""},
        {"org": " "},
        {"org": "home", "project": ""},
    ],
)
def test_a_key_that_makes_no_sense_is_refused(keys, wrong):
    with pytest.raises(InvalidInput):
        keys.create(**wrong)
