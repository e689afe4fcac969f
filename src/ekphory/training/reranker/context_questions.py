"""Questions that only the dialogue before them explains: pronouns, ellipses, "and what about …?".

Each rewriting takes a whole question, hides a part of it, and puts that part into the context.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

_AUXILIARIES = "did|does|do|is|are|was|were|has|have|had|can|could|will|would|should|may|might|must"
_ELLIPTICAL = re.compile(
    rf"^(?P<ask>When|Where|Why|How long) (?P<rest>(?P<auxiliary>{_AUXILIARIES}) .+)\?$"
)
_PERSONS = (("he", "his", "him"), ("she", "her", "her"))
_SHORT_QUESTIONS = {
    "When": ("When?", "When was that?", "And when?", "When did that happen?", "Since when?"),
    "Where": ("Where?", "Where was that?", "And where?", "In which place?", "Whereabouts?"),
    "Why": ("Why?", "Why is that?", "And why?", "What was the reason?", "How come?"),
    "How long": ("How long?", "For how long?", "And for how long?", "How long was that?"),
}
_CONFIRMED = ("Yes.", "Yes, it says so.", "Yes, that is right.", "I think so.", "That came up.")
_OPENINGS = (
    "I have a question about {name}.",
    "Tell me about {name}.",
    "I was just thinking of {name}.",
    "Do you remember {name}?",
    "{name} is coming over later.",
)
_REPLIES = ("Sure, what would you like to know?", "Of course.", "What about {name}?", "Go ahead.")
_ABOUT_OTHERS = ("And {name}?", "What about {name}?", "How about {name}?", "And what of {name}?")
_UNRELATED = (
    ("What is the weather like?", "I cannot see the weather from here."),
    ("Thanks for that.", "You are welcome."),
    ("Can you set a timer?", "Done."),
    ("I am back.", "Welcome back."),
)
_ROLES = (("user: ", "assistant: "), ("", ""), ("User: ", "Assistant: "))


@dataclass(frozen=True, slots=True)
class ContextQuestion:
    """A question with the dialogue before it.

    Attributes:
        text: The question.
        context: The turns, oldest first.
    """

    text: str
    context: tuple[str, ...]


def pronoun_question(
    question: str, name: str, earlier: tuple[str, str] | None, random: Random
) -> ContextQuestion | None:
    """Say he or she for `name`, who is the subject or owner in the question.

    Args:
        question: Names the person.
        name: The person.
        earlier: Another question about them and a passage that answers it; None for none.
        random: Chooses pronoun and wording.

    Returns:
        None where the question does not name the person in such a place.
    """
    subject, possessive, _ = random.choice(_fitting_persons(question))
    found = re.compile(rf"(?<=\b)(?P<owner>{re.escape(name)}'s)|(?P<who>{re.escape(name)})\b")
    match = found.search(question)
    if match is None:
        return None
    if match["who"] and not re.search(rf"\b(?:{_AUXILIARIES}) $", question[: match.start()], re.I):
        return None
    pronoun = possessive if match["owner"] else subject
    text = question[: match.start()] + pronoun + question[match.end() :]
    if re.search(rf"\b{re.escape(name)}\b", text):
        return None
    return ContextQuestion(_capitalised(text), _told(_introduction(name, earlier, random), random))


def elliptical_question(question: str, random: Random) -> ContextQuestion | None:
    """Ask "When was that?" after the rest of a question that begins with such a word.

    >>> elliptical_question("When did Ada go hiking?", Random(1)).context[0]
    'user: Did Ada go hiking?'

    Returns:
        None where the question begins with another word.
    """
    match = _ELLIPTICAL.match(question)
    if match is None:
        return None
    confirmed = (_capitalised(match["rest"]) + "?", random.choice(_CONFIRMED))
    return ContextQuestion(random.choice(_SHORT_QUESTIONS[match["ask"]]), _told(confirmed, random))


def question_about_another(
    question: str, name: str, other: str, random: Random
) -> ContextQuestion | None:
    """Ask "And Ada?" after the same question about somebody else.

    Returns:
        None where the question does not name the person, or names both.
    """
    if not re.search(rf"\b{re.escape(name)}\b", question) or other in question:
        return None
    asked = re.sub(rf"\b{re.escape(name)}\b", other, question)
    said = (asked, random.choice(("Let me see.", "I found something on that.", "Yes, I know.")))
    return ContextQuestion(random.choice(_ABOUT_OTHERS).format(name=name), _told(said, random))


def question_after_unrelated(question: str, random: Random) -> ContextQuestion:
    """Put a dialogue before the question that has nothing to do with it."""
    return ContextQuestion(question, _told(random.choice(_UNRELATED), random))


def _fitting_persons(question: str) -> list[tuple[str, str, str]]:
    """Give the persons whose possessive the question does not contradict."""
    other = {"his": "her", "her": "his"}
    words = set(re.findall(r"[a-z]+", question.lower()))
    fitting = [person for person in _PERSONS if other[person[1]] not in words]
    return fitting or list(_PERSONS)


def _introduction(name: str, earlier: tuple[str, str] | None, random: Random) -> tuple[str, ...]:
    if earlier is not None:
        return earlier
    return random.choice(_OPENINGS).format(name=name), random.choice(_REPLIES).format(name=name)


def _told(turns: tuple[str, ...], random: Random) -> tuple[str, ...]:
    roles = random.choice(_ROLES)
    return tuple(roles[place % 2] + turn for place, turn in enumerate(turns))


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]
