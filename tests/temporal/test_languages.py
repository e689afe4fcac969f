"""Times in other languages, read by dateparser; it is Wednesday, 18 November 2026."""

import pytest

from ekphory.time_words.parse import detect_language
from temporal.readings import reading, times


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Was haben wir gestern besprochen?", "de"),
        ("De quoi avons-nous parlé hier ?", "fr"),
        ("¿De qué hablamos el 8 de mayo?", "es"),
        ("我们昨天谈了什么", "zh"),
        ("Wo wohnt Anna?", None),
        ("What is on Mars?", None),
    ],
)
def test_a_language_is_known_by_its_words_of_time(text, language):
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Was haben wir gestern besprochen?", "2026-11-17/2026-11-18"),
        ("Was war am 8. Mai 2026?", "2026-05-08/2026-05-09"),
        ("De quoi avons-nous parlé hier ?", "2026-11-17/2026-11-18"),
        ("¿De qué hablamos el 8 de mayo?", "2026-05-08/2026-05-09"),
    ],
)
def test_another_language_is_read_where_dateparser_is_installed(text, expected):
    pytest.importorskip("dateparser")
    assert times(text) == [expected]
    assert reading(text).only_time
