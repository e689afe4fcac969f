"""Two times that make one: "between May 8th and June 9th", "last year in May"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ekphory.temporal.almanac import Span, Unit, length, moved, shifted
from ekphory.temporal.mention import Mention, Reader
from ekphory.temporal.modifiers import directed, unit_beside
from ekphory.temporal.reference import NO_SUCH_SESSION, Sessions
from ekphory.temporal.vocabulary import SIDE, step_of

_BETWEEN = re.compile(
    r"\b(?P<word>between|from|starting(?:\s+(?:from|in|on))?)\s+(?:[\w']+\s+){0,2}\Z", re.I
)
_TO = re.compile(
    r"\s*,?\s*(?P<word>to|until|till|through|thru|up\s+(?:to|until|till)|and|-)\s*"
    r"(?:(?:including|the|on|in|our)\s+)*\Z",
    re.I,
)
_WITHIN = re.compile(r"\s*,?\s*(?:(?:of|in|on|from|during|that|the|this)\s+)*\Z", re.I)
_CORRECTED = re.compile(
    r"\s*,?\s*(?P<both>(?:and|or)\s+(?:also\s+)?(?!but\b|rather\b))?(?:(?:but|and|rather)\s+)*"
    r"(?:(?:in|on|during|from|about)\s+)?(?:rather\s+)?(?:the\s+)?"
    r"(?:one|session|time|conversation|discussion|chat|meeting|(?P<unit>day|week|month|year))\s+"
    r"(?:right\s+|just\s+|directly\s+|immediately\s+)?(?P<side>before|prior|preceding|after)"
    r"(?:\s+to)?(?:\s+(?:that|it|this|the\s+last))?\b(?:\s+one\b)?",
    re.I,
)
_NOT = re.compile(r"\bnot\s+(?:(?:in|during|at|from|the|our)\s+)*\Z", re.I)
_BESIDE = re.compile(
    r"\b(?:the\s+)?(?:one|session|conversation|discussion|chat|meeting)\s+(?:right\s+|just\s+)?"
    rf"(?P<side>{SIDE})\s+(?:the\s+|our\s+)*\Z",
    re.I,
)


def combined(mentions: Sequence[Mention], reader: Reader) -> list[Mention]:
    """Join neighbours that belong together, from left to right."""
    done: list[Mention] = []
    for mention in mentions:
        following = _session_beside(_corrected(mention, mentions, reader), reader)
        joined = _joined(done[-1], following, reader) if done else None
        if joined is None:
            done.append(following)
        elif joined.sessions is not None and following.start < done[-1].end:
            # "In May, sessions 1 and 2": the time is already joined with the first of them.
            done.append(joined)
        else:
            done = [*_all_within(done, joined), joined]
    return done


def _all_within(done: Sequence[Mention], joined: Mention) -> list[Mention]:
    """Apply to "sessions 1 and 2", two mentions of one place, the time that the last one got."""
    *others, last = done
    if joined.sessions is None or joined.sessions != last.sessions:
        return others
    place = (last.start, last.end)
    return [
        replace(each, start=joined.start, end=joined.end, span=joined.span)
        if (each.start, each.end) == place
        else each
        for each in others
    ]


def _corrected(mention: Mention, mentions: Sequence[Mention], reader: Reader) -> Mention:
    """Follow "not the last one, but the one before that", and "the last one and the one before"."""
    match = _CORRECTED.match(reader.after(mention.end))
    if match is None:
        return mention
    end = mention.end + match.end()
    # "the day before" can be the beginning of "the day before yesterday".
    if any(each.start < end < each.end for each in mentions):
        return mention
    denied = _NOT.search(reader.before(mention.start))
    start = mention.start - (0 if denied is None else len(denied[0]))
    grown = replace(mention, start=start, end=end)
    other = _stepped(grown, step_of(match["side"]), match["unit"])
    return _both(grown, other) if match["both"] and denied is None else other


def _session_beside(mention: Mention, reader: Reader) -> Mention:
    """Follow "the session before our third session"."""
    match = _BESIDE.search(reader.before(mention.start))
    if match is None or mention.sessions is None:
        return mention
    grown = replace(mention, start=mention.start - len(match[0]))
    return _stepped(grown, step_of(match["side"]))


def _both(mention: Mention, other: Mention) -> Mention:
    """Cover a time and the one right before or after it."""
    mine, theirs = mention.sessions, other.sessions
    if mine is not None and theirs is not None:
        if theirs.first == NO_SUCH_SESSION:
            return mention
        first, last = min(mine.first, theirs.first), max(mine.last, theirs.last)
        return replace(mention, sessions=Sessions(first, last))
    span, beside = mention.span or Span(None, None), other.span or Span(None, None)
    if span.start is None or span.end is None or beside.start is None or beside.end is None:
        return mention
    return replace(other, span=Span(min(span.start, beside.start), max(span.end, beside.end)))


def _stepped(mention: Mention, step: int, unit: str | None = None) -> Mention:
    if mention.sessions is not None:
        edge = mention.sessions.first if step < 0 else mention.sessions.last
        number = edge + step or NO_SUCH_SESSION
        return replace(mention, sessions=Sessions(number, number))
    span = mention.span
    if span is None or span.start is None or span.end is None:
        return mention
    if unit is not None:
        beside = unit_beside(span.start, span.end, unit.lower(), step)
        return replace(mention, span=beside, wider=None)
    whole = span.end - span.start
    return replace(
        mention,
        span=Span(moved(span.start, step * whole), moved(span.end, step * whole)),
        wider=None,
    )


def _joined(first: Mention, second: Mention, reader: Reader) -> Mention | None:
    between = reader.text[first.end : second.start]
    if len(between) > 40:
        return None
    counted = _counted_within(first, second, reader)
    if counted is not None:
        return counted
    to = _TO.match(between)
    if to is not None and _is_range(first, to["word"].lower(), reader):
        return _range(first, second)
    if _WITHIN.match(between):
        return _within(first, second) or _within(second, first)
    return None


def _counted_within(first: Mention, second: Mention, reader: Reader) -> Mention | None:
    """Read "the last session" and "before Christmas" as one: the last of those before it."""
    if first.sessions is None or first.span is not None:
        return None
    opened = directed(second, reader)
    is_open = opened.span is not None and None in (opened.span.start, opened.span.end)
    is_next = not reader.text[first.end : opened.start].strip()
    return _within(first, opened) if is_open and is_next else None


def _is_range(first: Mention, word: str, reader: Reader) -> bool:
    opening = _BETWEEN.search(reader.before(first.start))
    if word != "and":
        return True
    return opening is not None and opening["word"].lower() == "between"


def _range(first: Mention, second: Mention) -> Mention | None:
    confidence = min(first.confidence, second.confidence)
    if first.sessions is not None and second.sessions is not None:
        sessions = Sessions(first.sessions.first, second.sessions.last)
        return Mention(start=first.start, end=second.end, confidence=confidence, sessions=sessions)
    if first.span is None or second.span is None:
        return None
    start, end = _aligned(first, second)
    if start.start is None or end.end is None or start.start >= end.end:
        return None
    repeats = first.repeats if first.repeats == second.repeats else None
    return Mention(
        start=first.start,
        end=second.end,
        confidence=confidence,
        span=Span(start.start, end.end),
        repeats=repeats,
    )


def _aligned(first: Mention, second: Mention) -> tuple[Span, Span]:
    """Move what has no year (week, month) of its own so that the second follows the first."""
    start, end = first.span or Span(None, None), second.span or Span(None, None)
    if start.start is None or end.start is None:
        return start, end
    if start.start > end.start and first.repeats is not None:
        return _moved_into(start, first.repeats, Span(None, end.end)) or start, end
    if first.repeats is None and second.repeats is not None:
        return start, _moved_into(end, second.repeats, Span(start.start, None)) or end
    if first.repeats == "year" and second.repeats is None:
        return _moved_into(start, "year", Span(None, end.end)) or start, end
    return start, end


def _within(inner: Mention, outer: Mention) -> Mention | None:
    """Read "May" and "last year" as one, and "the second session" and "in May"."""
    if outer.span is None:
        return None
    both = replace(
        inner,
        start=min(inner.start, outer.start),
        end=max(inner.end, outer.end),
        confidence=min(inner.confidence, outer.confidence),
    )
    if inner.sessions is not None and inner.span is None:
        return replace(both, span=outer.span)
    if inner.span is None or inner.repeats is None:
        return None
    mine, whole = length(inner.span), length(outer.span)
    if mine is None or whole is None or mine >= whole:
        return None
    span = _moved_into(inner.span, inner.repeats, outer.span)
    if span is None:
        return None
    return replace(both, span=span, wider=None, repeats=outer.repeats)


def _moved_into(span: Span, every: Unit, outer: Span) -> Span | None:
    """Give the first repetition that begins at `outer.start`, or the last one before its end."""
    if span.start is None or span.end is None:
        return None
    per = {"week": 7, "month": 30.4, "year": 365.25}.get(every, 365.25)
    if outer.start is not None:
        rough = int((outer.start - span.start).days / per)
        steps = range(rough - 1, rough + 3)
    elif outer.end is not None:
        rough = int((outer.end - span.end).days / per)
        steps = range(rough + 1, rough - 3, -1)
    else:
        return span
    for step in steps:
        start = shifted(span.start, every, step)
        end = moved(start, span.end - span.start)
        if every == "year" and span.start.day == 1 and span.end.day == 1:
            end = shifted(span.end, every, step)
        after = outer.start is None or start >= outer.start
        before = outer.end is None or start < outer.end
        if after and before:
            return Span(start, end)
    return None
