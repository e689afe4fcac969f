"""Secrets are found by their form and by what is said, and what only looks like one is left."""

import hashlib
import random
import uuid
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.capture.secrets import (
    GITLEAKS_FILE,
    REDACTED,
    Secret,
    cut_out,
    entropy,
    find_answers,
    find_secrets,
    is_iban,
    merge_secrets,
    passes_luhn,
    redact,
    said_rules,
)

GITLEAKS_SHA256 = "e163e53b9e7e8a8511e77271e2b323ed057759542a6d988258afe3a1fa329caf"
GITHUB_TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
RULES = said_rules()
CASES = read_cases(__file__)


def cut(text):
    return [text[each.start : each.end] for each in find_secrets(text)]


@pytest.mark.parametrize(
    ("rule", "text"),
    [(rule, text) for rule in RULES for text in rule.finds],
    ids=lambda each: each if isinstance(each, str) else each.id,
)
def test_a_rule_finds_its_examples(rule, text):
    assert list(rule.find(text))


@pytest.mark.parametrize(
    ("rule", "text"),
    [(rule, text) for rule in RULES for text in rule.leaves],
    ids=lambda each: each if isinstance(each, str) else each.id,
)
def test_a_rule_leaves_what_is_none(rule, text):
    assert not list(rule.find(text))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("export KEY=AKIAIOSFODNN7QW2RTYU", "AKIAIOSFODNN7QW2RTYU"),
        (
            "token ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        ),
        ("api_key: 8f14e45fceea167a5a36dedd4bea2543", "8f14e45fceea167a5a36dedd4bea2543"),
        ("the router's password is hedgehog-Lamp-91.", "hedgehog-Lamp-91"),
        ("card 4111 1111 1111 1111, valid till 04/29", "4111 1111 1111 1111"),
        ("POSTGRES_PASSWORD=hunter2 docker compose up", "hunter2"),
        (r"{\"password\": \"hunter2\"}", "hunter2\\"),
        (
            '"SecretAccessKey": "EqV8ib8HDy88YtDtXbiufMdI8X2Y4rUmer+BH3M1"',
            "EqV8ib8HDy88YtDtXbiufMdI8X2Y4rUmer+BH3M1",
        ),
        ("send it to GB82 WEST 1234 5698 7654 32", "GB82 WEST 1234 5698 7654 32"),
    ],
)
def test_a_secret_is_found_where_it_stands(text, secret):
    assert cut(text) == [secret]


@pytest.mark.parametrize(("text", "secret"), CASES["said"])
def test_a_secret_that_is_said_is_cut_out(text, secret):
    assert secret not in redact(text)[0]


@pytest.mark.parametrize("text", CASES["harmless"])
def test_what_is_said_of_secrets_and_holds_none_stays_as_it_is(text):
    assert redact(text) == (text, 0)


def test_a_private_key_is_cut_out_whole():
    key = (
        f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEowIBAAKCAQEA' * 8}\n-----END RSA PRIVATE KEY-----"
    )
    text, count = redact(f"here it is:\n{key}\nkeep it safe")
    assert (text, count) == (f"here it is:\n{REDACTED}\nkeep it safe", 1)


def harmless(number):
    chance = random.Random(number)
    return [
        hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest(),
        f"commit {hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest()[:10]}",
        str(uuid.UUID(int=chance.getrandbits(128))),
        f"#{chance.randrange(16**6):06x}",
        f"order {chance.randrange(10**7):07d}",
        f"order no. {chance.randrange(10**15, 10**16)}",
        f"/srv/app/releases/{chance.randrange(10**14)}/config.toml",
        f"v{chance.randrange(20)}.{chance.randrange(99)}.{chance.randrange(99)}-rc{chance.randrange(9)}",
        f"sha512-{hashlib.sha512(str(number).encode()).hexdigest()}",
        f"invoice INV-{chance.randrange(2020, 2027)}-{chance.randrange(10**5):05d}",
    ][number % 10]


def test_of_2000_harmless_strings_at_most_one_in_a_hundred_is_cut_out():
    texts = [f"see {harmless(number)} for it" for number in range(1_800)] + [
        f"{CASES['harmless'][number % len(CASES['harmless'])]}, see {harmless(number)}"
        for number in range(200)
    ]
    assert sum(bool(find_secrets(text)) for text in texts) <= 20


def test_the_published_rules_are_as_published():
    content = files("ekphory.capture").joinpath(GITLEAKS_FILE).read_bytes()
    assert hashlib.sha256(content).hexdigest() == GITLEAKS_SHA256


def test_secrets_that_overlap_are_cut_out_as_one():
    secrets = [Secret(4, 9, "a"), Secret(0, 5, "b"), Secret(12, 14, "c")]
    merged = merge_secrets(secrets)
    assert [(each.start, each.end) for each in merged] == [(0, 9), (12, 14)]
    assert cut_out("0123456789abcdefg", merged) == f"{REDACTED}9ab{REDACTED}efg"


def test_a_long_text_is_read_to_its_end():
    text = "word " * 60_000 + "the gate code is 4471"
    assert cut(text) == ["4471"]


@given(st.text(max_size=400))
def test_what_is_cut_out_of_is_otherwise_as_it_was(text):
    clean, count = redact(text)
    assert clean == text if count == 0 else REDACTED in clean


@given(st.text(max_size=200))
def test_a_text_that_is_clean_stays_so(text):
    clean, _ = redact(text)
    assert redact(clean)[0].replace(REDACTED, "") == clean.replace(REDACTED, "") or redact(clean)[1]


@pytest.mark.parametrize(
    ("number", "right"),
    [("4111111111111111", True), ("4111111111111112", False), ("79927398713", True)],
)
def test_a_card_is_checked_by_its_last_digit(number, right):
    assert passes_luhn(number) is right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("DE89 3704 0044 0532 0130 00", True),
        ("de89370400440532013000", True),
        ("DE88 3704 0044 0532 0130 00", False),
        ("DE89", False),
    ],
)
def test_an_account_number_is_checked_by_its_two_digits(text, right):
    assert is_iban(text) is right


@pytest.mark.parametrize(("text", "bits"), [("aaaa", 0.0), ("abab", 1.0), ("abcd", 2.0)])
def test_entropy_is_in_bits_a_character(text, bits):
    assert entropy(text) == bits


@pytest.mark.parametrize(
    ("before", "text", "secrets"),
    [
        (["what's the streaming password?"], "comet.brie.52, don't share it", ["comet.brie.52"]),
        (["and the gate's code?", "hm"], "it's 4471", ["4471"]),
        (["what's the password?"], "no idea, ask Jarmo", []),
        (["how are you?"], "comet.brie.52 is a song", []),
    ],
)
def test_what_answers_a_question_for_a_secret_is_one(before, text, secrets):
    assert [text[each.start : each.end] for each in find_answers(text, before)] == secrets
