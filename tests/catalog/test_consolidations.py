"""How large a group of features was, for each user apart."""

from ekphory.catalog.database import MIGRATIONS, Database
from ekphory.catalog.semantic import Consolidations, FeatureGroup

GROUP = FeatureGroup(
    org="home", project=None, set_id="s", category="kitchen", tag="food", user=None
)


def test_groups_of_several_users_and_of_none_have_sizes_of_their_own(tmp_path):
    sizes = Consolidations(Database(tmp_path / "catalog.sqlite3"))
    for size, user in enumerate((None, "", "mara"), start=1):
        sizes.note(GROUP._replace(user=user), size)
    assert [sizes.size(GROUP._replace(user=user)) for user in (None, "", "mara")] == [1, 2, 3]


def test_a_size_can_be_noted_again(tmp_path):
    sizes = Consolidations(Database(tmp_path / "catalog.sqlite3"))
    sizes.note(GROUP, 8)
    sizes.note(GROUP, 3)
    assert sizes.size(GROUP) == 3


def test_sizes_that_an_earlier_version_noted_are_those_of_no_user(tmp_path, monkeypatch):
    monkeypatch.setattr("ekphory.catalog.database.MIGRATIONS", MIGRATIONS[:2])
    earlier = Database(tmp_path / "catalog.sqlite3")
    earlier.write("INSERT INTO consolidations VALUES ('home', NULL, 's', 'kitchen', 'food', 8)")
    earlier.close()
    monkeypatch.undo()
    assert Consolidations(Database(tmp_path / "catalog.sqlite3")).size(GROUP) == 8
