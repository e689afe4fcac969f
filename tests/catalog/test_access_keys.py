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


def test_the_catalog_keeps_no_byte_of_the_key(keys, database, path):
    secret = keys.create().text.split("_", 2)[2].encode()  # it may hold underscores itself
    database.close()
    assert not any(secret in file.read_bytes() for file in path.parent.iterdir())


def test_a_key_is_not_shown_with_what_is_known_of_it(keys):
    made = keys.create()
    assert made.text not in repr(made) + repr(keys.all())


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1] + "~", lambda text: text + "x", lambda text: text[3:]]
)
def test_a_text_that_is_nearly_a_key_is_none(keys, change):
    assert keys.recognise(change(keys.create().text)) is None


@pytest.mark.parametrize("text", ["", "ek_", "ek__", "ek_é_x", "sk-other", "ek_' OR 1=1 --_x"])
def test_a_text_that_is_no_key_is_none(keys, text):
    assert keys.recognise(text) is None


def test_a_revoked_key_is_worth_nothing(keys):
    made = keys.create()
    keys.revoke(made.key.id)
    assert keys.recognise(made.text) is None
    assert keys.any_in_use() is False
    assert keys.all()[0].revoked_at is not None
    with pytest.raises(NotThere, match="no key 'abc'"):
        keys.revoke("abc")


@pytest.mark.parametrize("wrong", [{"rights": "all"}, {"project": "chat"}])
def test_a_key_that_makes_no_sense_is_refused(keys, wrong):
    with pytest.raises(InvalidInput):
        keys.create(**wrong)
