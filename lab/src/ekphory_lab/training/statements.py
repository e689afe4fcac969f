"""Turns what a speaker says about themselves into the questions that it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from ekphory_lab.training.question_groups import WORDS

# Plain forms of English verbs, as far as turning statements into questions needs them.

_VERBS, _WORDS = WORDS["verbs"], WORDS["statements"]
_IRREGULAR: dict[str, str] = dict(pair.split(":") for pair in _VERBS["irregular"].split())
PARTICIPLES = frozenset(_VERBS["participles"].split())
_NOT_PAST = frozenset(_VERBS["not_past"].split())
_E_BEFORE_D = ("v", "c", "g", "s", "z", "u", "at", "ir", "ar", "ik", "ok", "ak", "op", "id", "ot")
_ENDS_ITSELF = ("eat", "oat", "eak", "ook", "ear", "oop", "eed", "oad", "eet", "ss", "air", "oor")
_KEEPS_DOUBLE = ("ll", "ss", "zz", "ff")


def plain_form_of_past(word: str) -> str | None:
    """Return the plain form of a past tense; None where the word is not one.

    >>> plain_form_of_past("went"), plain_form_of_past("hiked"), plain_form_of_past("beach")
    ('go', 'hike', None)
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if not word.endswith("ed") or len(word) < 4 or word in _NOT_PAST:
        return None
    stem = word[:-2]
    if stem.endswith("i"):
        return stem[:-1] + "y"
    if stem.endswith(_ENDS_ITSELF):
        return stem
    if len(stem) > 2 and stem[-1] == stem[-2] and not stem.endswith(_KEEPS_DOUBLE):
        return stem[:-1]
    return stem + "e" if stem.endswith(_E_BEFORE_D) or len(stem) < 3 else stem


def plain_form_of_third_person(word: str) -> str | None:
    """Return the plain form of a verb after he, she or it; None where the word is not one.

    >>> plain_form_of_third_person("teaches"), plain_form_of_third_person("has")
    ('teach', 'have')
    """
    special = {"has": "have", "does": "do", "goes": "go"}
    if word in special:
        return special[word]
    if not word.endswith("s") or word.endswith(("ss", "us", "is")) or len(word) < 4:
        return None
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    return word[:-1]


# Reads what somebody says about themselves: subject, auxiliary, verb, object and the rest.

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s*[;]\s+|,\s+(?:and|but|so)\s+(?=(?:i|my|we)\b)", re.I)
_OPENING = re.compile(_WORDS["opening"], re.I)
_CONTRACTIONS: Mapping[str, str] = _WORDS["contractions"]
_ADVERBS = frozenset(_WORDS["adverbs"].split())
_AUXILIARIES = {"am": "is", "are": "is", "is": "is", "was": "was", "were": "was"}
_PERFECT = {"have": "has", "had": "had"}
_MODALS = frozenset(_WORDS["modals"].split())
_NEGATIONS = frozenset(_WORDS["negations"].split())
_OPEN_VERBS = frozenset(_WORDS["open_verbs"].split())
_BOUNDARIES = frozenset(_WORDS["boundaries"].split())
_OPINIONS = frozenset(_WORDS["opinions"].split())
_NOT_VERBS = frozenset(_WORDS["not_verbs"].split())


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows the object: the word that opens it and all its words.

    >>> Tail("in", "in a factory")
    Tail(opener='in', text='in a factory')
    """

    opener: str
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that a speaker makes about themselves or about what is theirs.

    Attributes:
        subject: Empty for the speaker, else what is theirs, such as `dad`.
        auxiliary: The word that opens its question: does, did, is, was, has, can, …
        verb: What follows the subject in the question, such as `love to bake`; empty for a copula.
        object: What follows up to the first preposition; may be empty.
        tails: The rest, cut before prepositions, conjunctions and words for a time.
    """

    subject: str
    auxiliary: str
    verb: str
    object: str
    tails: tuple[Tail, ...]


def statements(text: str) -> Iterator[Statement]:
    """Read every sentence that starts with `I`, `we` or `my …`; questions and others are left."""
    for sentence in _SENTENCE_END.split(text):
        if sentence.rstrip().endswith("?"):
            continue
        found = _statement(_OPENING.sub("", sentence.strip()))
        if found is not None:
            yield found


def _statement(sentence: str) -> Statement | None:
    words = _words(sentence)
    if len(words) < 3 or _NEGATIONS & {word.lower() for word in words}:
        return None
    first = words[0].lower()
    if first in ("i", "we"):
        return _own(words[1:])
    if first == "my":
        return _belonging(words[1:])
    return None


def _words(sentence: str) -> list[str]:
    words: list[str] = []
    for raw in sentence.replace("\u2019", "'").split():
        word = raw.strip('.,!?"()')
        if word:
            words.extend(_CONTRACTIONS.get(word.lower(), word).split())
    return [word for word in words if word.lower() not in _ADVERBS]


def _own(words: list[str]) -> Statement | None:
    head = words[0].lower()
    if len(words) < 2 or head in _OPINIONS:
        return None
    if head in _AUXILIARIES:
        return _with_auxiliary("", _AUXILIARIES[head], words[1:])
    if head in _MODALS:
        return _with_verb("", head, words[1:])
    if head in _PERFECT and (words[1].lower() in PARTICIPLES or words[1].lower().endswith("ed")):
        return _with_verb("", _PERFECT[head], words[1:])
    return _in_one_word(head, words[1:])


def _in_one_word(verb: str, rest: list[str]) -> Statement | None:
    past = plain_form_of_past(verb)
    if past is not None:
        return _with_verb("", "did", [past, *rest])
    if not verb.isalpha() or verb in _NOT_VERBS:
        return None
    return _with_verb("", "does", [verb, *rest])


def _belonging(words: list[str]) -> Statement | None:
    for place in range(1, min(4, len(words) - 1)):
        subject, head = " ".join(words[:place]), words[place].lower()
        if head in _AUXILIARIES:
            return _with_auxiliary(subject, _AUXILIARIES[head], words[place + 1 :])
        past = plain_form_of_past(head)
        if past is not None:
            return _with_verb(subject, "did", [past, *words[place + 1 :]])
        present = plain_form_of_third_person(head)
        if present is not None and place + 1 < len(words) and head in ("has", "loves", "works"):
            return _with_verb(subject, "does", [present, *words[place + 1 :]])
    return None


def _with_auxiliary(subject: str, auxiliary: str, words: list[str]) -> Statement | None:
    if not words:
        return None
    if words[0].lower().endswith("ing") and len(words) > 1:
        return _with_verb(subject, auxiliary, words)
    return _cut(subject, auxiliary, "", words)


def _with_verb(subject: str, auxiliary: str, words: list[str]) -> Statement:
    taken = _words_of_verb([word.lower() for word in words])
    return _cut(subject, auxiliary, " ".join(words[:taken]), words[taken:])


def _words_of_verb(words: list[str]) -> int:
    """How many words `like to bake`, `enjoy baking` or `been baking` take of the sentence."""
    opening = words[0].removesuffix("ing")
    following = words[1] if len(words) > 1 else ""
    if following == "to" and len(words) > 2 and opening in _OPEN_VERBS:
        return 3
    if following.endswith("ing") and opening in _OPEN_VERBS:
        return 2
    return 2 if words[0] == "been" and following else 1


def _cut(subject: str, auxiliary: str, verb: str, words: list[str]) -> Statement:
    pieces: list[list[str]] = [[]]
    for word in words:
        if word.lower() in ("but", "so"):
            break
        if word.lower() in _BOUNDARIES:
            pieces.append([word])
        else:
            pieces[-1].append(word)
    tails = tuple(Tail(piece[0].lower(), " ".join(piece)) for piece in pieces[1:])
    return Statement(subject, auxiliary, verb, " ".join(pieces[0]), tails)


# Turns what a speaker says about themselves into the questions that it answers.

_TIMES = re.compile(_WORDS["times"], re.I)
_PLACES = frozenset(_WORDS["places"].split())
_NUMBER = re.compile(r"^(?:two|three|four|five|six|seven|eight|nine|ten|twelve|\d+)\s+(\w+)", re.I)
_AGE = re.compile(r"^\d+ years? old", re.I)
_FEELINGS = frozenset(_WORDS["feelings"].split())
_OCCUPATION = re.compile(_WORDS["occupation"], re.I)
_EMPTY_OBJECTS = frozenset(_WORDS["empty_objects"].split())
_SAYS_LITTLE = frozenset(_WORDS["says_little"].split())
_GRAMMAR = frozenset(_WORDS["grammar"].split())
_RELATIVES = frozenset(_WORDS["relatives"].split())
_LASTING = re.compile(r"\byears?|months?|weeks?|days?\b")
_ASKED_BY_OPENER: Mapping[str, str] = _WORDS["asked_by_opener"]


def statement_questions(text: str, name: str, random: Random) -> list[str]:
    """Return every question about `name` that `text`, said by them, answers.

    Args:
        text: One turn.
        name: Who says it.
        random: Chooses the pronoun that stands for the speaker.
    """
    possessive = random.choice(("his", "her", "their"))
    found: dict[str, None] = {}
    for statement in statements(text):
        for question in _questions(statement, name):
            if _says_enough(question, name):
                found[_third_person(question, name, possessive)] = None
    return list(found)


def _says_enough(question: str, name: str) -> bool:
    own = name.lower().split()
    words = [word for word in re.findall(r"[\w'-]+", question.lower()) if word not in own]
    return bool(set(words) - _GRAMMAR - _SAYS_LITTLE - {"i", "my"})


def _questions(statement: Statement, name: str) -> Iterator[str]:
    subject = f"{name}'s {statement.subject}" if statement.subject else name
    if not statement.verb:
        yield from _copula_questions(statement, subject)
    elif statement.object.lower() not in _EMPTY_OBJECTS:
        yield from _verb_questions(statement, subject)


def _copula_questions(statement: Statement, subject: str) -> Iterator[str]:
    described = statement.object
    words = described.lower().split()
    if statement.subject:
        yield f"What {statement.auxiliary} {subject}?"
        if statement.subject.split()[-1] in _RELATIVES and words[:1] in (["a"], ["an"]):
            yield f"What does {subject} do for a living?"
    elif _AGE.match(described):
        yield f"How old is {subject}?"
    elif words[:1] in (["a"], ["an"]):
        if _OCCUPATION.search(described):
            yield f"What does {subject} do for a living?"
            yield f"What is {subject}'s job?"
        yield f"Is {subject} {described}?"
    elif words and words[-1] in _FEELINGS:
        yield from _feeling_questions(statement, subject, words[-1])
    yield from _place_and_time_questions(statement, f"{statement.auxiliary} {subject}", described)


def _feeling_questions(statement: Statement, subject: str, feeling: str) -> Iterator[str]:
    yield f"Why {statement.auxiliary} {subject} {feeling}?"
    for tail in statement.tails[:1]:
        if tail.opener in ("about", "for", "with"):
            yield f"What {statement.auxiliary} {subject} {feeling} {tail.opener}?"
            yield f"How does {subject} feel {tail.text}?"


def _verb_questions(statement: Statement, subject: str) -> Iterator[str]:
    asked = f"{statement.auxiliary} {subject}"
    predicate = f"{asked} {statement.verb}"
    rest = " ".join(tail.text for tail in statement.tails[:1])
    if statement.object:
        yield f"What {predicate}?" if not rest else f"What {predicate} {rest}?"
        number = _NUMBER.match(statement.object)
        if number:
            yield f"How many {number[1]} {predicate}?"
    elif " " in statement.verb and statement.verb.endswith("ing"):
        yield f"What {asked} {statement.verb.split()[0]} doing?"
    if statement.object or rest:
        whole = f"{statement.verb} {statement.object} {rest}"
        yield f"{statement.auxiliary.capitalize()} {subject} {whole}?"
    yield from _place_and_time_questions(
        statement, asked, f"{statement.verb} {statement.object}".strip()
    )


def _place_and_time_questions(statement: Statement, asked: str, middle: str) -> Iterator[str]:
    for place, tail in enumerate(statement.tails):
        others = " ".join(other.text for other in statement.tails[:place])
        known = f"{asked} {middle} {others}".strip()
        yield from _tail_questions(tail, known)
    time = _TIMES.search(statement.object)
    if time and statement.verb:
        before = statement.object[: time.start()].strip()
        yield f"When {asked} {statement.verb} {before}?"


def _tail_questions(tail: Tail, known: str) -> Iterator[str]:
    if len(tail.text.split()) < 2 and not _TIMES.search(tail.text):
        return
    if _TIMES.search(tail.text):
        yield f"When {known}?"
    elif tail.opener in _PLACES:
        yield f"Where {known}{' from' if tail.opener == 'from' else ''}?"
        if tail.opener == "to":
            yield f"What {known} to?"
    elif tail.opener == "for" and _LASTING.search(tail.text):
        yield f"How long {known}?"
    elif tail.opener in _ASKED_BY_OPENER:
        yield _ASKED_BY_OPENER[tail.opener].format(known)


def _third_person(question: str, name: str, possessive: str) -> str:
    person = {"his": "him", "her": "her", "their": "them"}[possessive]
    words = {"my": possessive, "our": "their", "me": person, "us": "them", "i": name}
    words |= {"myself": {"him": "himself", "her": "herself"}.get(person, "themselves")}
    changed = re.sub(
        r"\b(?:my|our|me|us|i|myself)\b",
        lambda match: words[match[0].lower()],
        question,
        flags=re.I,
    )
    return re.sub(r"\s+", " ", changed).replace(" ?", "?")
