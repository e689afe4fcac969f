"""Whether a stored text tries to steer the model that will read it."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from urllib.parse import unquote

# Scripts that are written without spaces between words.

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # kana, Han
    "\uac00-\ud7af"  # Hangul, whose endings cling to the word
)
"""For a character class of a regular expression; a change needs a new `TERMS_VERSION`."""


# Marks of chat templates, characters that look like Latin letters, and those that do not show.

_DISGUISES = tomllib.loads(files(__package__).joinpath("disguises.toml").read_text("utf-8"))
_MARKER, _OPENS_A_TURN, INVISIBLE, ACCENTS = (
    re.compile(str(_DISGUISES[name]).replace("NAMED", _DISGUISES["named"]))
    for name in ("marker", "opens_a_turn", "invisible", "accents")
)
LOOKALIKES = {
    ord(character): letter
    for characters, letters in _DISGUISES["lookalikes"].items()
    for character, letter in zip(characters, letters, strict=True)
}
"""For `str.translate`: look-alike to Latin letter."""
_FIRST_SIGNS = frozenset("<＜[［#")
"""With one of them every such marker begins."""


def neutralise_markers(text: str) -> str:
    """Put round brackets around the names of markers: `<|im_start|>` becomes `(im_start)`."""
    return _MARKER.sub(lambda match: f"({match[match.lastindex or 0]})", text)


def opens_a_turn(text: str) -> bool:
    """Say whether a text holds a marker that has no use but to open or close a chat turn.

    `<s>` is none of them: it is also HTML.
    """
    return not _FIRST_SIGNS.isdisjoint(text) and _OPENS_A_TURN.search(text) is not None


# What hides words is undone, in time that is proportional to the length of the text.

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_TAGS = re.compile("[\U000e0020-\U000e007e]")
# Single characters that NFKC makes to many: phrases, months, units. No Latin word hides in them.
_WHOLE_PHRASES = re.compile("[\u3300-\u33ff\ufdf0-\ufdfd\U0001f200-\U0001f265]")
_ROUNDS = 3
"""How often escapes may be nested."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}+(?:\r?\n[A-Za-z0-9+/_-]{8,}+)*+={0,2}")
_URL_SAFE = str.maketrans("-_", "+/", "\r\n")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[\s:,]?){8,}+")
_SHARE_OF_TEXT = 0.9
"""Bytes are a text only when so many of their characters are printable."""


def unescape_text(text: str) -> str:
    """Undo HTML entities, percent-encoding and backslash escapes, nested ones too."""
    for _ in range(_ROUNDS):
        before = text
        if "\\" in text:
            text = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
        if _PERCENT.search(text):
            text = unquote(text)
        if "&" in text:
            text = html.unescape(text)
        if text == before:
            break
    return text


def drop_invisible(text: str) -> str:
    """Drop invisible characters, and fold compatibility characters (NFKC)."""
    if text.isascii():
        return INVISIBLE.sub("", text)
    return unicodedata.normalize("NFKC", _WHOLE_PHRASES.sub(" ", INVISIBLE.sub("", text)))


def spell_tags(text: str) -> str:
    """Return what tag characters, which never show, spell in ASCII."""
    return "".join(chr(ord(tag) - 0xE0000) for tag in _TAGS.findall(text))


def fold_letters(text: str) -> str:
    """Return the visible text in lower case, without accents, look-alikes as Latin letters."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.translate(LOOKALIKES).casefold())
    return unicodedata.normalize("NFC", ACCENTS.sub("", decomposed)).translate(LOOKALIKES)


def decode_parts(text: str) -> Iterator[tuple[str, str]]:
    """Return the names of the encodings that hide anything, each with the hidden texts as lines."""
    for name, pattern, decode in _ENCODINGS:
        hidden = (_as_text(decode, match[0]) for match in pattern.finditer(text))
        lines = "\n".join(filter(None, hidden))
        if lines:
            yield name, lines


def _from_base64(text: str) -> bytes:
    standard = text.rstrip("=").translate(_URL_SAFE)
    # A single character left over carries no byte.
    whole = standard[: len(standard) - (len(standard) % 4 == 1)]
    return base64.b64decode(whole + "=" * (-len(whole) % 4))


_ENCODINGS: tuple[tuple[str, re.Pattern[str], Callable[[str], bytes]], ...] = (
    ("base64", _BASE64, _from_base64),
    ("hex", _HEX, lambda text: bytes.fromhex(re.sub(r"[\s:,]", "", text))),
)


def _as_text(decode: Callable[[str], bytes], part: str) -> str | None:
    """Return what a part hides; None where it hides no text, as most words and numbers do."""
    try:
        plain = decode(part).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    shown = sum(character.isprintable() or character.isspace() for character in plain)
    return plain if shown >= _SHARE_OF_TEXT * len(plain) else None


# A text as a string of codes, one for each word that a rule knows; rules are searched in it.

OTHER = "x"
"""Code of a word that no rule knows."""
LONGEST_GAP = 6
"""How many other words may stand between two items of a rule at most."""

_FIRST_CODE = 0xE000
_SHORTEST_COMPOUND = 10
_SCRAMBLED_LENGTHS = range(6, 21)
_LONGEST_REMEMBERED = 20
_MOST_REMEMBERED = 50_000
_MOSTLY = 0.8
"""A compound is taken apart only when so much of it is known."""

_LETTER = rf"[^\W_{UNSPACED}]"
_TOKEN = re.compile(rf"<[a-z]+>|[{UNSPACED}]+|(?:{_LETTER}|[@$!|€])++|[.?…。:,;、()\[\]\"“”«»\n]")
_MARKS = {".": ".", "?": ".", "…": ".", "。": ".", ":": ":", "\n": "\n"}
_MARKS |= dict.fromkeys(',;、()[]"“”«»', ",")

_CAPITALS = re.compile(r"\bDAN\b")
_REWRITINGS = (
    (re.compile(r"\bhttps?://"), " <url> "),
    (re.compile(r"@(?=[\w-]+\.[a-z])"), " <email> "),
    (re.compile(r"n['’]t\b"), "nt"),
    (re.compile(r"['’]s\b"), ""),
    (re.compile(r"['’]re\b"), " are"),
    (re.compile(r"!+(?![^\W_])"), "."),
    # A blank line and an item of a list begin a new sentence.
    (re.compile(r"\n(?=[ \t]*(?:\n|[-*•][ \t]|\d{1,3}[.)]))"), ".\n"),
)
_SPELLED_OUT = re.compile(r"(?<![^\W_])[^\W_](?:[ \t.\-_*~/|+,·]{1,3}[^\W_]){3,}+(?![^\W_])")
_LONGER_WORD = re.compile(r"[a-z]{6,}")
_NOT_A_LETTER = re.compile(r"[\W_]+")

# Digits and signs that stand for letters; some for i or l.
_LEET = tuple(str.maketrans("013456789@$€!|", f"o{one}easgtbgase{one}{one}") for one in "il")
_LEET_SIGN = re.compile(r"[013456789@$!|€]")

_LONG_GAP = re.compile(f"{OTHER}{{{LONGEST_GAP + 1},}}")
_DOTTED_WORDS = re.compile(r"(?:[^.,:\n]\.){3,}")
_REPEATED_MARKS = re.compile(r":[,\n]*\n[.,\n]*|[,\n]*\.[.,\n]*|,*\n[,\n]*|,{2,}")


class Vocabulary:
    """The words that rules know, each with a code of one character.

    Raises:
        ValueError: A word can never be found, because it holds a sign that parts words.
    """

    def __init__(self, words: Iterable[str]) -> None:
        known = sorted(set(words) - _MARKS.keys())
        for word in known:
            if not _TOKEN.fullmatch(word):
                raise ValueError(
                    f"{word!r} must be a single word; join the words of a phrase with +"
                )
        self._codes = {word: chr(_FIRST_CODE + place) for place, word in enumerate(known)}
        self._scrambled = {
            _sort_inner_letters(word): code
            for word, code in self._codes.items()
            if len(word) in _SCRAMBLED_LENGTHS
        }
        parts = [word for word in self._codes if len(word) > 2 or not word.isascii()]
        self._part = re.compile(_match_longest(parts))
        # Texts are made of the same words over and over.
        self._remembered = lru_cache(_MOST_REMEMBERED)(self._encode_word)

    def code(self, word: str) -> str:
        """Return the code of a known word or mark.

        Raises:
            KeyError: The word is not known.
        """
        return _MARKS.get(word) or self._codes[word]

    def recognises(self, text: str) -> bool:
        """Say whether any longer word that is known stands in a text, plainly written."""
        return not self._codes.keys().isdisjoint(_LONGER_WORD.findall(text.lower()))

    def encode(self, text: str) -> str:
        """Return the codes of a text's words in order, with `.`, `,`, `:` and line breaks between.

        Known words are found however they are written: spelled out, run together, in digits for
        letters, or with their inner letters scrambled.
        """
        text = fold_letters(_CAPITALS.sub("<dan>", text))
        for pattern, replacement in _REWRITINGS:
            text = pattern.sub(replacement, text)
        text = _SPELLED_OUT.sub(lambda match: _NOT_A_LETTER.sub("", match[0]), text)
        tokens = _TOKEN.findall(text)
        encoded = "".join(
            self._remembered(token)
            if len(token) <= _LONGEST_REMEMBERED
            else self._encode_word(token)
            for token in tokens
        )
        encoded = _REPEATED_MARKS.sub(_choose_strongest, encoded)
        encoded = _DOTTED_WORDS.sub(lambda match: match[0].replace(".", ""), encoded)
        return _LONG_GAP.sub(OTHER * (LONGEST_GAP + 1), encoded)

    def _encode_word(self, token: str) -> str:
        known = self._codes.get(token) or _MARKS.get(token)
        if known is None and _LEET_SIGN.search(token):
            read = (self._codes.get(token.translate(table)) for table in _LEET)
            known = next((code for code in read if code), None)
        if known is None and len(token) in _SCRAMBLED_LENGTHS:
            known = self._scrambled.get(_sort_inner_letters(token))
        if known is not None:
            return known
        return self._take_apart(token)

    def _take_apart(self, token: str) -> str:
        """Return the codes of the known words of a compound, or of writing without spaces."""
        unspaced = not token.isascii() and _UNSPACED_START.match(token) is not None
        if not unspaced and len(token) < _SHORTEST_COMPOUND:
            return OTHER if _HAS_LETTER.search(token) else ""
        codes: list[str] = []
        end = known = 0
        for match in self._part.finditer(token):
            codes.append(_encode_unknown(match.start() - end) + self._codes[match[0]])
            known += len(match[0])
            end = match.end()
        codes.append(_encode_unknown(len(token) - end))
        return "".join(codes) if unspaced or known >= _MOSTLY * len(token) else OTHER


_UNSPACED_START = re.compile(rf"[{UNSPACED}]")
_HAS_LETTER = re.compile(r"[^\W_]")


def _encode_unknown(letters: int) -> str:
    """Count two letters without spaces as a word."""
    return OTHER * (-(-letters // 2))


def _choose_strongest(match: re.Match[str]) -> str:
    return ":." if match[0][0] == ":" else next(mark for mark in ".\n," if mark in match[0])


def _sort_inner_letters(word: str) -> tuple[str, str, str]:
    return word[0], "".join(sorted(word[1:-1])), word[-1]


def _match_longest(words: Iterable[str]) -> str:
    """Return a pattern for the longest of the words, as a tree of prefixes: one step a letter."""
    tree: dict[str, list[str]] = {}
    for word in words:
        tree.setdefault(word[0], []).append(word[1:])
    branches = [
        re.escape(letter) + (f"(?:{_match_longest(filter(None, rests))})" if any(rests) else "")
        + ("?" if "" in rests and any(rests) else "")
        for letter, rests in sorted(tree.items())
    ]  # fmt: skip
    return "|".join(branches)


# The rules of `steering_rules.toml`, compiled to expressions over the codes of words.

_RULE_MARKS = ".,:\n"
_PAUSE = "[,\n]{0,2}"
_JOINT = "[,:\n]{0,2}"
"""What may stand between two items that follow each other; a colon not between other words."""
_GAP = re.compile(r"~([1-9])")
_CLAUSE = "^"
_LINE = "LINE"
_LEAD_IN = "lead_in"

Words = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to say what a rule looks for.

    Attributes:
        expression: Matches the codes of a text.
        needs: For every item that may not be missing, the codes of which a text must hold one.
    """

    expression: re.Pattern[str]
    needs: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """What a text says, in all the ways that are known."""

    name: str
    patterns: tuple[Pattern, ...]
    unless: re.Pattern[str] | None

    def matches(self, codes: str, patterns: Collection[Pattern]) -> bool:
        """Say whether one of these patterns is found outside of what `unless` finds."""
        if not any(pattern.expression.search(codes) for pattern in patterns):
            return False
        if self.unless is None:
            return True
        rest = self.unless.sub(OTHER, codes)
        return any(pattern.expression.search(rest) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class RuleBook:
    """All rules, and the words that they know.

    Attributes:
        vocabulary: The words.
        rules: In the order in which they are tried.
        by_code: Patterns with the places of their rules, by the codes of the rarest item of each,
            so that only few patterns are looked at for a text.
    """

    vocabulary: Vocabulary
    rules: tuple[Rule, ...]
    by_code: Mapping[str, tuple[tuple[int, Pattern], ...]]

    def first_match(self, text: str) -> str | None:
        """Return the name of the first rule that a plain text matches."""
        codes = self.vocabulary.encode(text)
        present = frozenset(codes)
        able: dict[int, list[Pattern]] = {}
        for code in present:
            for place, pattern in self.by_code.get(code, ()):
                if not any(needed.isdisjoint(present) for needed in pattern.needs):
                    able.setdefault(place, []).append(pattern)
        rules = ((self.rules[place], able[place]) for place in sorted(able))
        return next((rule.name for rule, patterns in rules if rule.matches(codes, patterns)), None)


@cache
def rule_book() -> RuleBook:
    """Read and compile the rules; once in a process."""
    source = files("ekphory.prompting").joinpath("steering_rules.toml")
    return compile_rules(source.read_text(encoding="utf-8"))


def compile_rules(toml: str) -> RuleBook:
    """Compile rules in the form that `steering_rules.toml` describes.

    Raises:
        ValueError: A pattern names a list that is not there, has a gap that is too wide, or may be
            empty.
    """
    read = tomllib.loads(toml)
    lists: Words = {name: fold_letters(words).split() for name, words in read["words"].items()}
    patterns = [each for rule in read["rule"] for each in rule["patterns"] + rule.get("unless", [])]
    choices = [_list_choices(item, lists) for pattern in patterns for item in pattern.split()]
    phrases = chain.from_iterable([*choices, *lists.values()])
    compiler = _Compiler(lists, Vocabulary(chain.from_iterable(map(_split_phrase, phrases))))
    rules = tuple(
        Rule(
            rule["name"],
            tuple(map(compiler.compile, rule["patterns"])),
            re.compile("|".join(map(compiler.express, rule["unless"])))
            if rule.get("unless")
            else None,
        )
        for rule in read["rule"]
    )
    return RuleBook(compiler.vocabulary, rules, _index_by_code(rules))


def _index_by_code(rules: Iterable[Rule]) -> dict[str, tuple[tuple[int, Pattern], ...]]:
    placed = [(place, pattern) for place, rule in enumerate(rules) for pattern in rule.patterns]
    # Words that many patterns know, such as "you", are also those that most texts hold.
    uses = Counter(code for _, pattern in placed for codes in pattern.needs for code in codes)
    found: dict[str, list[tuple[int, Pattern]]] = {}
    for place, pattern in placed:
        for code in min(pattern.needs, key=lambda codes: max(map(uses.__getitem__, codes))):
            found.setdefault(code, []).append((place, pattern))
    return {code: tuple(patterns) for code, patterns in found.items()}


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Turns patterns into expressions over codes."""

    lists: Words
    vocabulary: Vocabulary

    def compile(self, source: str) -> Pattern:
        choices = {item: _list_choices(item, self.lists) for item in source.split()}
        needs = tuple(
            frozenset(self.vocabulary.code(_split_phrase(phrase)[0]) for phrase in choices[item])
            for item in source.split()
            if choices[item] and not item.endswith("?")
        )
        if not needs:
            raise ValueError(f"{source}: at least one item must not be missing")
        return Pattern(re.compile(self.express(source)), needs)

    def express(self, source: str) -> str:
        lead_in = "".join(map(self.vocabulary.code, self.lists[_LEAD_IN]))
        places = {_CLAUSE: f"(?<![^{_RULE_MARKS}{lead_in}])", _LINE: r"(?<![^.\n])"}
        parts: list[str] = []
        for item in source.split():
            joint = _JOINT if parts and parts[-1] not in places.values() else ""
            parts.append(places.get(item) or self._express_item(item, joint))
        return "".join(parts)

    def _express_item(self, item: str, joint: str) -> str:
        gap = _GAP.fullmatch(item)
        if gap:
            if int(gap[1]) > LONGEST_GAP:
                raise ValueError(f"{item}: at most {LONGEST_GAP} other words may stand in a gap")
            return f"(?:{_PAUSE}[^{_RULE_MARKS}]){{0,{gap[1]}}}?"
        choice = "|".join(
            "".join(map(self.vocabulary.code, _split_phrase(phrase)))
            for phrase in _list_choices(item, self.lists)
        )
        return f"(?:{joint}(?:{choice}))" + ("?" if item.endswith("?") else "")


def _list_choices(item: str, lists: Words) -> list[str]:
    """Return the words and phrases that an item stands for; none for places and gaps."""
    if item in (_CLAUSE, _LINE) or _GAP.fullmatch(item):
        return []
    choices: list[str] = []
    for choice in item.removesuffix("?").split("|"):
        if choice.startswith("{"):
            name = choice[1:-1]
            if name not in lists:
                raise ValueError(f"{item}: there is no list {name!r} under [words]")
            choices.extend(lists[name])
        else:
            choices.append(fold_letters(choice))
    return choices


def _split_phrase(phrase: str) -> list[str]:
    return phrase.split("+")


# Whether a stored text tries to steer the model that will read it.

CHAT_MARKER = "chat marker"
"""Name of the rule that finds marks of chat templates."""
_DEEPEST = 2
"""How often encodings may be nested."""


@dataclass(frozen=True, slots=True)
class InjectionVerdict:
    """What was found in one text.

    Attributes:
        rule: Name of the rule that the text matches; None where it matches none.
        reading: How the text had to be read for that: `as written` (escapes and look-alikes
            undone), `tag characters`, `base64`, `hex`, `rot13` or `reversed`; else empty.
    """

    rule: str | None
    reading: str

    @property
    def is_injection(self) -> bool:
        """Whether any rule matches."""
        return self.rule is not None


HARMLESS = InjectionVerdict(None, "")


def find_injection(text: str) -> InjectionVerdict:
    """Decide whether a text tries to steer a model, by the rules of `steering_rules.toml`.

    The rules know English, and in part German, French, Spanish, Italian, Portuguese, Dutch,
    Russian, Chinese, Japanese and Korean. They find orders to a model, not lies: a text that
    steers by false facts passes. Takes time in proportion to the length of the text.
    """
    for reading, plain in _readings(text):
        rule = CHAT_MARKER if opens_a_turn(plain) else rule_book().first_match(plain)
        if rule is not None:
            return InjectionVerdict(rule, reading)
    return HARMLESS


def _readings(text: str) -> Iterator[tuple[str, str]]:
    written = unescape_text(text)
    plain = drop_invisible(written)
    yield "as written", plain
    if spelled := spell_tags(written):
        yield "tag characters", spelled
    yield from _decode(plain, depth=1)
    for reading, turned in (("rot13", codecs.decode(plain, "rot13")), ("reversed", plain[::-1])):
        # Most texts turned round hold no word at all, and are not read further.
        if rule_book().vocabulary.recognises(turned):
            yield reading, turned


def _decode(text: str, *, depth: int) -> Iterator[tuple[str, str]]:
    parts = [(name, drop_invisible(unescape_text(part))) for name, part in decode_parts(text)]
    yield from parts
    if depth < _DEEPEST:
        for _, part in parts:
            yield from _decode(part, depth=depth + 1)
