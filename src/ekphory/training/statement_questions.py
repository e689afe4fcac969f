"""Turns what a speaker says about themselves into the questions that it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from ekphory.training.invented_names import POSSESSIVES
from ekphory.training.statements import Statement, Tail, statements

_TIMES = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last \w+|next \w+|this (?:morning|afternoon|evening"
    r"|week|weekend|month|year|summer|winter|spring|fall)|every \w+|\w+ ago|january|february|march"
    r"|april|june|july|august|september|october|november|december|monday|tuesday|wednesday"
    r"|thursday|friday|saturday|sunday|(?:19|20)\d\d)\b",
    re.I,
)
_PLACES = frozenset("in at to from on near through".split())
_NUMBER = re.compile(r"^(?:two|three|four|five|six|seven|eight|nine|ten|twelve|\d+)\s+(\w+)", re.I)
_AGE = re.compile(r"^\d+ years? old", re.I)
_FEELINGS = frozenset(
    """happy excited proud nervous sad afraid scared worried grateful thankful glad sorry angry
    upset tired thrilled passionate interested allergic addicted good bad""".split()
)
_OCCUPATION = re.compile(
    r"\b(?:\w{3,}(?:er|or|ist|ian)|nurse|student|chef|accountant|attendant|mechanic|pilot|coach"
    r"|surgeon|assistant|clerk|dentist|cashier|guard|athlete|model|vet|lawyer)$",
    re.I,
)
_EMPTY_OBJECTS = frozenset("it that this them so you one me there too what how".split())
_SAYS_LITTLE = frozenset(
    """have think see know like love want get do go going guess hope sure bet say be keep try agree
    imagine mean""".split()
)
_GRAMMAR = frozenset(
    """what who where when why how long many does did do is was has had can could will would should
    a an the to of in on at for with from about""".split()
)
_RELATIVES = frozenset("mom mother dad father sister brother wife husband boss friend son".split())


def statement_questions(text: str, name: str, random: Random) -> list[str]:
    """Give every question about `name` that `text`, said by them, answers.

    Args:
        text: One turn.
        name: Who says it.
        random: Chooses the pronoun that stands for the speaker.
    """
    possessive = random.choice(POSSESSIVES)
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
    elif tail.opener == "with":
        yield f"Who {known} with?"
    elif tail.opener in ("because", "since"):
        yield f"Why {known}?"
    elif tail.opener == "for":
        yield (
            f"How long {known}?"
            if re.search(r"\byears?|months?|weeks?|days?\b", tail.text)
            else (f"What {known} for?")
        )
    elif tail.opener == "about":
        yield f"What {known} about?"


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
