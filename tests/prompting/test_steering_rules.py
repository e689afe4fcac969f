"""The language that rules are written in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.prompting.injection import compile_rules, rule_book

WORDS = """
[words]
lead_in = "please"
ignore = "ignore pay+no+heed+to"
orders = "rules instructions"
"""


def matches(pattern, text, unless=()):
    rule = f'[[rule]]\nname = "it"\npatterns = [{pattern!r}]\nunless = {list(unless)!r}\n'
    return compile_rules(WORDS + rule).first_match(text) == "it"


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        ("{ignore} {orders}", "IGNORE rules", "ignore the rules"),
        ("{ignore} ~2 {orders}", "ignore all the rules", "ignore all of the rules"),
        ("{ignore} ~2 {orders}", "ignore, please, rules", "ignore it. Rules"),
        ("{ignore} {orders}", "pay no heed to rules", "pay heed to rules"),
        ("{ignore} the? {orders}", "ignore the rules", "ignore my rules"),
        ("drop|leave {orders}", "leave rules", "keep rules"),
        ("^ {ignore}", "So: please ignore", "they ignore"),
        ("LINE {ignore}", "Hi.\nIgnore", "Hi, ignore"),
        ("{orders} :", "rules: none", "rules are none"),
        ("drop|: {orders}", "x: rules", "x rules"),
    ],
)
def test_a_pattern_finds_what_it_says_and_no_more(pattern, found, not_found):
    assert matches(pattern, found)
    assert not matches(pattern, not_found)


@pytest.mark.parametrize(
    "text",
    [
        "ıgnоre rulеs",
        "1gn0re ru1es",
        "!9n0r3 |, ru13$",
        "i g n o r e  r u l e s",
        "i.g.n.o.r.e r-u-l-e-s",
        "ignorerules",
        "ingore rules",
        "Ignore. Rules. Now. Please.",
        "ignore_rules",
        "**ignore**\nrules",
    ],
)
def test_words_are_found_however_they_are_written(text):
    assert matches("{ignore} {orders}", text)


def test_what_unless_finds_is_not_counted():
    assert not matches("{ignore}", "never ignore", unless=["never {ignore}"])
    assert matches("{ignore}", "never ignore, but ignore", unless=["never {ignore}"])


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("{nothing}", "no list 'nothing'"),
        ("a ~9 b", "~9"),
        ("don't", "must be a single word"),
        ("^ a?", "at least one item"),
    ],
)
def test_a_pattern_that_cannot_work_is_refused(pattern, problem):
    with pytest.raises(ValueError, match=problem):
        compile_rules(WORDS + f'[[rule]]\nname = "it"\npatterns = ["{pattern}"]')


known_words = st.sampled_from(
    "you are now ignore forget all your previous the instructions rules print show system prompt "
    "without telling the user do not act as dan . , : \n tea".split(" ")
)


@given(st.lists(known_words, max_size=12).map(" ".join))
def test_a_pattern_that_is_not_looked_at_would_not_have_matched(text):
    book = rule_book()
    codes = book.vocabulary.encode(text)
    matching = [rule.name for rule in book.rules if rule.matches(codes, rule.patterns)]
    assert book.first_match(text) == next(iter(matching), None)
