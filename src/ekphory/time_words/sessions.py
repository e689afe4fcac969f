"""Sessions by their number: "our third session", "2 sessions ago", "last time", "sessions 1-3"."""

from __future__ import annotations

import re
from collections.abc import Callable

from ekphory.time_words.reference import (
    BEFORE_LAST,
    COUNT,
    NUMBER,
    ORDINAL,
    UNIT,
    Mention,
    Reader,
    Rule,
    Sessions,
    count_of,
    ordinal_of,
    rule,
)

Mentions = tuple[Mention, ...]

SESSION = r"(?:sessions?|conversations?|discussions?|chats?|dialogues?|dialogs?|talks?)\b"
_MEETING = r"(?:meetings?|calls?)\b"
_TALKED = (
    r"(?:have\s+|had\s+|last\s+|ever\s+)*(?:talk|talked|spoke|spoken|speak|chat|chatted|discussed"
    r"|conversed|met|meet|did\s+this|were\s+talking|were\s+chatting)\b"
)
_WE_TALKED = rf"(?:that\s+)?(?:we|you\s+and\s+I|I)\s+{_TALKED}"
_ASKED_FOR = re.compile(
    r"(?:\b(?:for|was|is|were|when)|\bwhen\b.*)\s+(?:the\s+|our\s+)?\Z", re.I | re.S
)
_ASKED_WHEN = re.compile(
    rf"\b(?:(?:when|how\s+long\s+ago|(?:what|which)\s+(?:day|date|time|week|month|year|{SESSION}))"
    r"\s+(?:was|is|were|did)\s+(?:(?:we|you\s+and\s+I|I)\s+(?:have\s+)?)?"
    r"|how\s+long\s+(?:is\s+it\s+|has\s+it\s+been\s+)?since\s+"
    r"|(?:know|remember|recall)\s+when\s+)(?:(?:was|is)\s+)?(?:the\s+|our\s+|my\s+)?\Z",
    re.I,
)
_NO_MORE = re.compile(r"\s*(?:[?.!,;]|\Z)")
_NOT_A_TIME = rf"(?!\s*(?:{UNIT}|ago\b|am\b|pm\b)|[:./]\d)"
_TO = r"\s*(?:-|to|through|thru|until|till|up\s+to)\s*"
_APART = re.compile(r",|&|\b(?:and|or)\b", re.I)
_BETWEEN = re.compile(r"\bbetween\s+(?:the\s+|our\s+)*\Z", re.I)
_MOST = 18
"""Numbers of a list that are read after the first two."""
_AND = r"\s*(?:,\s*(?:and|or)|,|and|&|or)"
_NEXT_ORDINAL = rf"(?:{_TO}|{_AND}\s+)(?:the\s+|our\s+)*{ORDINAL}"
_NEXT_NUMBER = (
    rf"(?:{_TO}|{_AND}\s*)(?:(?:{SESSION}|{_MEETING})\s*)?(?:number\s+|no\.?\s*|#\s*)?"
    rf"{NUMBER}{_NOT_A_TIME}"
)
_CUES = (
    "session sessions conversation conversations discussion discussions chat chats dialogue dialog "
    "dialogues dialogs talk talks"
)
_MEETING_CUES = f"{_CUES} meeting meetings call calls"


def _found(match: re.Match[str], first: int, last: int, confidence: float = 0.92) -> Mentions:
    lower, upper = (first, last) if first <= last else (last, first)
    sessions = Sessions(lower, upper)
    return (
        Mention(start=match.start(), end=match.end(), sessions=sessions, confidence=confidence),
    )


def _is_asked_for(match: re.Match[str], reader: Reader) -> bool:
    """Whether "when did we last talk about the dog?" asks for the time, and so names none."""
    # "When did we last talk?", with nothing more in it, is answered by that session.
    if _NO_MORE.match(reader.after(match.end())):
        return False
    return _ASKED_WHEN.search(reader.before(match.start())) is not None


def _ordinal(match: re.Match[str], reader: Reader) -> Mentions:
    if _is_asked_for(match, reader):
        return ()
    number = ordinal_of(match["ordinal"])
    return _found(match, number, number) if number else ()


def _ordinals(match: re.Match[str], reader: Reader) -> Mentions:
    return _listed(match, reader, ORDINAL, ordinal_of)


def _numbered(match: re.Match[str], reader: Reader) -> Mentions:
    return _listed(match, reader, NUMBER, count_of)


def _listed(
    match: re.Match[str], reader: Reader, pattern: str, number_of: Callable[[str], int]
) -> Mentions:
    """Read "2, 3 and 5" as three of them, "1 to 3 and 5" as a range and one more."""
    first = number_of(match["first"])
    ranges, others, done = [(first, first)], match["others"], 0
    following = list(re.finditer(pattern, others, re.I))
    is_between = len(following) == 1 and _BETWEEN.search(reader.before(match.start()))
    for each in following:
        number = number_of(each[0])
        if _APART.search(others[done : each.start()]) and not is_between:
            ranges.append((number, number))
        else:
            ranges[-1] = (ranges[-1][0], number)
        done = each.end()
    if any(min(pair) < 1 for pair in ranges):
        return ()
    return tuple(each for pair in dict.fromkeys(ranges) for each in _found(match, *pair))


def _ago(match: re.Match[str], reader: Reader) -> Mentions:
    del reader
    count = count_of(match["count"])
    return _found(match, -count, -count) if count else ()


def _from_end(match: re.Match[str], reader: Reader) -> Mentions:
    del reader
    if match["but"] is not None:
        number = count_of(match["but"]) + 1
    else:
        number = 2 if match["ordinal"] is None else ordinal_of(match["ordinal"])
    return _found(match, -number, -number) if number else ()


def _last(match: re.Match[str], reader: Reader) -> Mentions:
    if _is_asked_for(match, reader):
        return ()
    if match["before_last"]:
        return _found(match, -2, -2)
    count = 1 if match["count"] is None else count_of(match["count"])
    is_sure = match["which"].lower() not in ("this", "current", "past", "recent")
    return _found(match, -count, -1, 0.9 if is_sure else 0.75) if count else ()


def _before_last(match: re.Match[str], reader: Reader) -> Mentions:
    del reader
    return _found(match, -2, -2, 0.88)


def _first(match: re.Match[str], reader: Reader) -> Mentions:
    del reader
    count = 1 if match["count"] is None else count_of(match["count"])
    return _found(match, 1, count) if count else ()


def _time(match: re.Match[str], reader: Reader) -> Mentions:
    which, talked = match["which"].lower(), match["talked"]
    if talked is None and _ASKED_FOR.search(reader.before(match.start())):
        return ()
    if _is_asked_for(match, reader):
        return ()
    sure = 0.75 if talked is None else 0.88
    if match["before_last"]:
        return _found(match, -2, -2, sure)
    if which in ("last", "previous", "latest"):
        return _found(match, -1, -1, sure)
    if talked is None:
        return ()
    number = ordinal_of(which)
    return _found(match, number, number, sure) if number else ()


def _we_talked_last(match: re.Match[str], reader: Reader) -> Mentions:
    if _is_asked_for(match, reader):
        return ()
    number = -1 if match["which"].lower() in ("last", "previously") else 1
    return _found(match, number, number, 0.8)


RULES: tuple[Rule, ...] = (
    rule(
        _MEETING_CUES,
        rf"\b(?P<first>{ORDINAL})(?:\s+{SESSION})?"
        rf"(?P<others>(?:{_NEXT_ORDINAL}(?:\s+{SESSION})?){{0,{_MOST}}}{_NEXT_ORDINAL})\s+{SESSION}",
        _ordinals,
    ),
    rule(
        _MEETING_CUES,
        rf"\b(?P<ordinal>{ORDINAL})\s+(?:ever\s+)?{SESSION}",
        _ordinal,
    ),
    rule(
        _MEETING_CUES,
        rf"\b(?:our|my)\s+(?P<ordinal>{ORDINAL})\s+{_MEETING}",
        _ordinal,
    ),
    rule(
        _MEETING_CUES,
        rf"\b(?:{SESSION}|{_MEETING})\s*(?:number\s+|numbers\s+|no\.?\s*|nr\.?\s*|#\s*)?"
        rf"(?P<first>{NUMBER}){_NOT_A_TIME}(?P<others>(?:{_NEXT_NUMBER}){{0,{_MOST}}})",
        _numbered,
    ),
    rule(
        f"{_MEETING_CUES} times",
        rf"\b(?P<count>{COUNT})\s+(?:{SESSION}|{_MEETING}|times)\s+(?:ago|back|prior|earlier)\b",
        _ago,
    ),
    rule(
        _CUES,
        rf"\b(?:(?P<ordinal>{ORDINAL})(?:\s+|-)(?:(?:to|from)(?:\s+|-)(?:the(?:\s+|-))?)?"
        rf"(?:last|latest|most\s+recent)|penultimate|next[\s-]+to[\s-]+last"
        rf"|last\s+but\s+(?P<but>{NUMBER}))\s+{SESSION}",
        _from_end,
    ),
    rule(
        _MEETING_CUES,
        r"\b(?P<which>last|latest|most\s+recent|previous|prior|preceding|newest|final|current|this"
        rf"|past|recent)\s+(?:(?P<count>{COUNT})\s+)?(?:{SESSION}|(?:meetings|calls)\b)"
        rf"(?P<before_last>\s+{BEFORE_LAST})?",
        _last,
    ),
    rule(
        "meeting call",
        r"\bour\s+(?P<which>last|latest|most\s+recent|previous|prior)\s+(?P<count>\d)?(?:meeting|call)"
        rf"\b(?P<before_last>\s+{BEFORE_LAST})?",
        _last,
    ),
    rule(
        _CUES,
        rf"\b(?:(?:very\s+)?first\s+(?P<count>{COUNT})|initial|earliest|oldest|very\s+first)\s+"
        rf"{SESSION}",
        _first,
    ),
    rule(
        f"{_CUES} one time",
        rf"\b(?:{SESSION}|time|one)\s+{BEFORE_LAST}(?:\s+(?:one\b|{SESSION}))?",
        _before_last,
    ),
    rule(
        "time",
        rf"\b(?P<which>last|previous|latest|{ORDINAL})\s+time\b(?P<before_last>\s+{BEFORE_LAST})?"
        rf"(?:\s+(?P<talked>{_WE_TALKED})|(?=\s*(?:[?.!,;]|\Z|we\s+(?:had|were)\b)))",
        _time,
    ),
    rule(
        "last first previously",
        rf"\b(?:we|you\s+and\s+I)\s+(?P<which>last|first|previously)\s+{_TALKED}",
        _we_talked_last,
    ),
)
