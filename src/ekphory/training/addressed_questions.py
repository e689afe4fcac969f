"""Turns a question that is put to somebody into the question of a third person about them."""

from __future__ import annotations

import re

_CONTEXT_WORDS = re.compile(r"\b(?:it|that|this|them|those|these|else|too|one|there|me|i)\b", re.I)
_YOU = re.compile(r"\b(?:you|your)\b", re.I)
_THIRD_PERSON = (
    (re.compile(r"\bdo you\b", re.I), "does {}"),
    (re.compile(r"\bare you\b", re.I), "is {}"),
    (re.compile(r"\bwere you\b", re.I), "was {}"),
    (re.compile(r"\bhave you\b", re.I), "has {}"),
    (re.compile(r"\byou are\b|\byou're\b", re.I), "{} is"),
    (re.compile(r"\byou have\b|\byou've\b", re.I), "{} has"),
    (re.compile(r"\byour\b", re.I), "{}'s"),
    (re.compile(r"\byou\b", re.I), "{}"),
)
_CONTRACTIONS = ((re.compile(r"^(what|who|where|how|when)'s\b", re.I), r"\1 is"),)
_LAST_SENTENCE = re.compile(r"(?:^|[.!?,]\s+)((?:so|and|but|well|oh)[, ]+)?([^.!?]*\?)\s*$", re.I)
_LEAST_WORDS = 4
_ANSWERS_NOTHING = re.compile(r"what about|how about|how are you|do you mean|you know", re.I)


def reported_question(turn: str, name: str) -> str | None:
    """Give the turn's closing question as one about `name`, to whom it was put.

    >>> reported_question("Nice! What do you do for fun?", "Ada")
    'What does Ada do for fun?'

    Returns:
        None where the turn ends with no question, or with one that only its context explains.
    """
    match = _LAST_SENTENCE.search(turn.replace("\u2019", "'"))
    question = match[2].strip() if match else ""
    if len(question.split()) < _LEAST_WORDS or _CONTEXT_WORDS.search(question):
        return None
    if not _YOU.search(question) or _ANSWERS_NOTHING.search(question):
        return None
    for pattern, replacement in _CONTRACTIONS:
        question = pattern.sub(replacement, question)
    for pattern, wording in _THIRD_PERSON:
        question = pattern.sub(wording.format(name), question)
    return question[0].upper() + question[1:]
