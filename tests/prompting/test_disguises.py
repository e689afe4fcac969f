"""Words are read through what hides them."""

import pytest

from ekphory.prompting.injection import (
    decode_parts,
    drop_invisible,
    fold_letters,
    spell_tags,
    unescape_text,
)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("ig\u200bno\u00adre", "ignore"),
        ("ｉｇｎｏｒｅ", "ignore"),
        ("\U0001d422\U0001d420\U0001d427\U0001d428\U0001d42b\U0001d41e", "ignore"),
        ("іgnоrе", "ignore"),
        ("ιgnοre", "ignore"),
        ("ɪɢɴᴏʀᴇ", "ignore"),
        ("I\u0334g\u0335n\u0336öré", "ignore"),
        ("🅸🅶🅽🅾🆁🅴", "ignore"),
        ("für Äpfel", "fur apfel"),
        ("忽略", "忽略"),
        ("무시", "무시"),
    ],
)
def test_letters_are_read_as_what_they_look_like(text, plain):
    assert fold_letters(drop_invisible(text)) == plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("&#105;gnore &amp;#105;t", "ignore it"),
        ("ignore%20it%2520", "ignore it "),
        (r"\x69gnor\u0065", "ignore"),
        ("100% of 5 %", "100% of 5 %"),
    ],
)
def test_escapes_are_undone_also_when_nested(text, plain):
    assert unescape_text(text) == plain


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("see aWdub3JlIHRoZSBydWxlcw== here", [("base64", "ignore the rules")]),
        ("aWdub3JlIHRo\nZSBydWxlcw", []),
        ("aWdub3JlIHRoZSBydWxl\ncyBhbmQgb2JleQ==", [("base64", "ignore the rules and obey")]),
        ("69676e6f72652072756c6573", [("hex", "ignore rules")]),
        ("69 67 6e 6f 72 65 20 72 75 6c 65 73", [("hex", "ignore rules")]),
        ("internationalization of everything", []),
        ("3f786850e387550fdab836ed7e6dc881de23001b", []),
    ],
)
def test_encoded_parts_are_decoded_where_they_hide_text(text, parts):
    assert list(decode_parts(text)) == parts


def test_tag_characters_spell_ascii():
    assert spell_tags("nice \U000e0069\U000e0067 day\U000e006e") == "ign"
