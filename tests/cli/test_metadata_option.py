import pytest

from ekphory.cli.options import read_metadata
from ekphory.errors import InvalidInput


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("year=2026", {"year": 2026}),
        ("price=1.5", {"price": 1.5}),
        ("open=true", {"open": True}),
        ('zip="01234"', {"zip": "01234"}),
        ("zip=01234", {"zip": "01234"}),
        ("name=Anna Lee", {"name": "Anna Lee"}),
        ("formula=a=b", {"formula": "a=b"}),
        ("empty=", {"empty": ""}),
        ("nothing=null", {"nothing": "null"}),
        ("size=NaN", {"size": "NaN"}),
        ("list=[1]", {"list": "[1]"}),
    ],
)
def test_a_value_is_a_json_scalar_or_else_text(pair, expected):
    assert read_metadata([pair]) == expected


def test_no_pairs_are_no_metadata():
    assert read_metadata(None) is None


@pytest.mark.parametrize("pair", ["year", "=2026", " =2026"])
def test_a_pair_without_a_key_or_a_value_is_refused(pair):
    with pytest.raises(InvalidInput, match=r"must be key=value\. Write --metadata year=2026"):
        read_metadata([pair])
