from hypothesis import given
from hypothesis import strategies as st

from ekphory.store.lance import KnownNames


def test_a_name_that_was_never_noted_is_not_possible() -> None:
    known = KnownNames()
    known.note(["a", None, "b"])
    assert known.possible(["c", "d"]) == []


def test_possible_names_come_back_in_the_order_asked() -> None:
    known = KnownNames()
    known.note(["a", "b"])
    assert known.possible(["b", "x", "a", "b"]) == ["b", "a", "b"]


def test_nothing_is_possible_before_anything_was_noted() -> None:
    assert KnownNames().possible(["a"]) == []


def test_many_names_are_all_kept() -> None:
    known = KnownNames()
    names = [f"name {number}" for number in range(30_000)]
    known.note(names[:20_000])
    known.note(names[20_000:])
    assert known.possible(names) == names


@given(st.lists(st.text()), st.lists(st.text()))
def test_no_noted_name_is_ever_missed(noted: list[str], asked: list[str]) -> None:
    known = KnownNames()
    known.note(noted)
    assert set(noted) & set(asked) <= set(known.possible(asked))
