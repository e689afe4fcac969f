"""Stage 12: what memories lend to one another, by links and by revisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ekphory.documents.notes import JOINER, REFERENCES
from ekphory.errors import StoreError
from ekphory.retrieval.asked_state import AskedState, asked_state
from ekphory.retrieval.pipeline import NO_ROWS, SearchState, Stage, read_candidates
from ekphory.store.ledger import FOREVER, RevisionLink
from ekphory.store.protocol import IntArray
from ekphory.types import SUPERSEDING, MemoryRecord, to_microseconds

# After the probabilities: notes lend a share of theirs along the links between them.
#
# Who asks about the director of a film finds the note of the film, and the answer stands in the
# note that it links to. A note that is linked with one of the best therefore gets a share of that
# one's probability, beside its own, also where no arm has found it.


@dataclass(frozen=True, kw_only=True, eq=False)
class FollowLinks(Stage):
    """Adds to a memory's probability a share of that of a better one which links join it with.

    A link leads to the best memory of its note, or to the first one where none was found, and back
    from a note to those that link to it and were found. What one memory lends is divided by
    how many it lends to, so that a list of links lifts none of them much; of several that lend to
    one memory the most counts. Where none of the best has a link, nothing is read or changed.

    Attributes:
        share: What is lent of a probability, in all.
        lending: How many of the best candidates lend.
        among: How many of the best candidates are looked at for links between them, and how many
            links are followed to notes that are not among them.
    """

    number = 12
    name = "follow links"
    needs = frozenset({"probability"})

    share: float = 0.1
    lending: int = 10
    among: int = 30

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing is lent in a list that time orders."""
        if state.order == "time":
            return "the list is in the order of time"
        return super().skip_reason(state)

    def run(self, state: SearchState) -> SearchState:
        """Lend along the links of the best candidates."""
        candidates, best = read_candidates(state, most=self.lending)
        state = replace(state, candidates=candidates)
        if not any(map(links_of, best)):
            return replace(state, notes={"lent": 0})
        candidates, found = read_candidates(state, most=self.among)
        rows = candidates.rows[: len(found)].tolist()
        try:
            linked = _Linked.of(state, list(zip(rows, found, strict=True)), self)
        except StoreError as error:
            return replace(state, degraded=f"linked notes not read: {error}")
        lent: dict[int, float] = {}
        for place, record in enumerate(found[: self.lending]):
            goals = linked.goals(rows[place], record)
            probability = float(candidates.scores["probability"][place])
            for goal in goals:
                lent[goal] = max(lent.get(goal, 0.0), self.share * probability / len(goals))
        candidates = candidates.joined_by(lent)
        extra = np.array([lent.get(row, 0.0) for row in candidates.rows.tolist()])
        probability = np.minimum(candidates.scores["probability"] + extra, 1).astype(np.float32)
        changed = candidates.scored_by_name("probability", probability)
        order = np.lexsort((np.arange(len(changed)), -probability))
        return replace(state, candidates=changed.in_order(order), notes={"lent": len(lent)})


def links_of(record: MemoryRecord) -> tuple[str, ...]:
    """Return the notes that a memory links to, in lower case, without what leads up to them."""
    joined = str(record.metadata.get(REFERENCES, "")).lower()
    return tuple(filter(None, (each.lstrip("./").strip() for each in joined.split(JOINER))))


def is_called(record: MemoryRecord, link: str) -> bool:
    """Say whether a link means a memory's note: by its name, or by the end of its path."""
    path = (record.path or "").lower().removesuffix(".md")
    return path == link or path.endswith(f"/{link}")


@dataclass(frozen=True, slots=True)
class _Linked:
    """Rows and memories to which links may lead, the best first; first passages after them."""

    found: Sequence[tuple[int, MemoryRecord]]
    openings: Sequence[tuple[int, MemoryRecord]]

    @classmethod
    def of(
        cls, state: SearchState, found: Sequence[tuple[int, MemoryRecord]], limits: FollowLinks
    ) -> _Linked:
        links = {link: None for _, each in found[: limits.lending] for link in links_of(each)}
        unknown = [link for link in links if not any(is_called(each, link) for _, each in found)]
        keys = state.resources.openings(unknown[: limits.among]) if unknown else NO_ROWS
        rows = state.snapshot.rows_of(keys)
        rows = rows[rows >= 0]
        rows = rows[state.request.visible[rows]]
        keys = state.snapshot.columns.key[rows]
        records = state.resources.records(keys.tolist())
        pairs = zip(rows.tolist(), keys.tolist(), strict=True)
        openings = [(row, records[key]) for row, key in pairs if key in records]
        # Of two notes of one name the one nearer to the top is meant.
        return cls(found, sorted(openings, key=lambda pair: (len(pair[1].path or ""), pair[0])))

    def goals(self, row: int, record: MemoryRecord) -> list[int]:
        """Return the rows that a memory's links join it with."""
        leads = (self._goal(link) for link in links_of(record))
        back = (
            other
            for other, each in self.found
            if any(is_called(record, link) for link in links_of(each))
        )
        goals = dict.fromkeys((*leads, *back))
        return [goal for goal in goals if goal is not None and goal != row]

    def _goal(self, link: str) -> int | None:
        called = (row for row, each in (*self.found, *self.openings) if is_called(each, link))
        return next(called, None)


# At last: what is superseded stands below what supersedes it.
#
# A decision says with which probability q a newer memory replaces, corrects or ends an older one,
# or excepts from it for a while. It acts, or is a conflict that leans: too unsure to be told, but
# the order of hits follows it. Memories that decisions join are states of one topic. Which of
# them the question asks for follows from its words: the present state, an earlier one, or the one
# of a time that it names. Each of the others answers only if its decision is wrong, so its
# probability is multiplied by 1 - q, and stands below that of what came of it; which answers
# wherever it would have answered if it still held, so the probability of that is at least q times
# its own.


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderRevisions(Stage):
    """Puts the state that the question asks for above the other states of the same topic.

    A superseded memory recedes, or is left out, as the search says; an exception holds for its
    time, but not for a question about what is usual. A question about the past gets the state of
    then. Plans change no order: who asks what is, and who asks what is planned, find what they ask
    for by its words (LOG 41).
    """

    number = 12
    name = "order revisions"
    needs = frozenset({"probability"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to order without a revision, in a list that time orders, or where ignored."""
        if state.request.superseded == "ignore":
            return "the search ignores what supersedes what"
        if state.order == "time":
            return "the list is in the order of time"
        if not state.links.of_rows(state.candidates.rows.tolist()):
            return "no candidate was revised"
        return super().skip_reason(state)

    def run(self, state: SearchState) -> SearchState:
        """Move the candidates that revisions join."""
        asked = asked_state(state.text)
        groups = [
            _Group.of(state, rows, asked) for rows in state.links.joined_to(state.candidates.rows)
        ]
        groups = [group for group in groups if group.visible]
        candidates = state.candidates.joined_by(row for each in groups for row in each.wanted)
        place_of = {int(row): place for place, row in enumerate(candidates.rows)}
        probability = candidates.scores["probability"].astype(np.float64)
        for group in groups:
            _move(probability, group, place_of)
        notes = {"topics": len(groups), "asked": asked}
        order = _exchange(groups, place_of, probability)
        if state.order == "score":
            candidates = candidates.scored_by_name("probability", probability.astype(np.float32))
            order = order[np.argsort(-probability[order], kind="stable")]
        ordered = candidates.in_order(order)
        if state.request.superseded == "hide":
            hidden = [row for group in groups for row in group.superseded]
            ordered = ordered.take(~np.isin(ordered.rows, hidden))
        return replace(state, candidates=ordered, notes=notes)


@dataclass(frozen=True, slots=True)
class _Group:
    """The states of one topic: which of them are asked for, and how sure the others are not.

    Attributes:
        visible: Rows that may be found, in the order in which they happened.
        wanted: Those that answer.
        unwanted: For each other row, the probability that it does not answer.
        superseded: Rows that a later one replaces, corrects or ends.
        heirs: Of each row that does not answer, those that answer for it.
        followers: Of each row that a later one superseded which does not answer either, those later
            ones; newest first, and only where the present state is asked for.
    """

    visible: tuple[int, ...]
    wanted: tuple[int, ...]
    unwanted: dict[int, float]
    superseded: tuple[int, ...]
    heirs: dict[int, tuple[int, ...]]
    followers: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, state: SearchState, rows: Sequence[int], asked: AskedState) -> _Group:
        columns, request = state.snapshot.columns, state.request
        visible = [row for row in rows if request.visible[row]]
        visible.sort(key=lambda row: (columns.at[row], row))
        among = set(visible)
        links = [
            link
            for link in state.links.of_rows(visible)
            if link.older in among and link.newer in among
        ]
        spans, times = _Spans(links, columns.at, request.now), _asked_times(state)
        unwanted = spans.unwanted(visible, asked, times)
        superseding = [link for link in links if link.acts and link.kind in SUPERSEDING]
        earlier_asked = bool(times) or asked in ("past", "first")
        between = [link for link in superseding if link.newer in unwanted and not earlier_asked]
        return cls(
            visible=tuple(visible),
            wanted=tuple(row for row in visible if row not in unwanted),
            unwanted=unwanted,
            superseded=tuple({link.older for link in superseding}),
            heirs=_find_heirs(links, unwanted),
            followers=_find_followers(between, visible),
        )

    def ranks(self) -> dict[int, int]:
        """Return 0 for each row that answers, and 1 and more for those that do not."""
        found = {row: int(row in self.unwanted) for row in self.visible}
        for row, later in self.followers.items():
            found[row] = 1 + max(found[each] for each in later)
        return found


def _find_followers(
    links: Sequence[RevisionLink], visible: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    followers: dict[int, list[int]] = defaultdict(list)
    for link in links:
        followers[link.older].append(link.newer)
    return {row: tuple(followers[row]) for row in reversed(visible) if row in followers}


def _find_heirs(
    links: Sequence[RevisionLink], unwanted: Mapping[int, float]
) -> dict[int, tuple[int, ...]]:
    """Return the rows that answer for each one that does not.

    They are what came of it, over others that do not answer; or, where an earlier state is asked
    for, what it came of.
    """
    later: dict[int, list[int]] = defaultdict(list)
    earlier: dict[int, list[int]] = defaultdict(list)
    for link in links:
        later[link.older].append(link.newer)
        earlier[link.newer].append(link.older)
    return {row: _reach(row, later, unwanted) or _reach(row, earlier, unwanted) for row in unwanted}


def _reach(
    row: int, steps: Mapping[int, Sequence[int]], unwanted: Mapping[int, float]
) -> tuple[int, ...]:
    found: list[int] = []
    seen, waiting = {row}, [row]
    while waiting:
        for following in steps.get(waiting.pop(), ()):
            if following not in seen:
                seen.add(following)
                (waiting if following in unwanted else found).append(following)
    return tuple(found)


class _Spans:
    """From when to when each state of one topic held."""

    def __init__(self, links: Sequence[RevisionLink], at: IntArray, now: int) -> None:
        self._at = at
        self.superseded: dict[int, RevisionLink] = {}
        self._wrong: dict[int, float] = {}
        self._holding: dict[int, RevisionLink] = {}
        self._over: dict[int, RevisionLink] = {}
        for link in links:
            if link.kind in SUPERSEDING:
                first = self.superseded.get(link.older)
                if first is None or link.since < first.since:
                    self.superseded[link.older] = link
            if link.kind == "corrects":
                self._wrong[link.older] = max(link.probability, self._wrong.get(link.older, 0.0))
            elif link.kind == "excepts" and now < link.until:
                self._holding[link.older] = link
            elif link.kind == "excepts":
                self._over[link.newer] = link
        self._ended = {**self.superseded, **self._over}

    def unwanted(
        self, rows: Sequence[int], asked: AskedState, times: Sequence[tuple[int, int]]
    ) -> dict[int, float]:
        """Return the rows that do not answer, each with how sure that is."""
        if times:
            meant = [row for row in rows if self._held_in(row, times) and row not in self._wrong]
        elif asked in ("past", "first"):
            over = [row for row in rows if row in self._ended]
            # What may have been true, or is asked for as what was said, where nothing else was.
            unsure = [row for row in over if self._wrong.get(row, 0.0) < 1]
            meant = [row for row in over if row not in self._wrong] or unsure
            meant = meant[:1] if asked == "first" else meant
        else:
            return self._not_now(asked) | self._wrong
        if not meant:
            return dict(self._wrong)
        sure = {row: self._certainty(row, meant) for row in rows} | self._wrong
        return {row: each for row, each in sure.items() if row not in meant}

    def _not_now(self, asked: AskedState) -> dict[int, float]:
        # What excepts for the moment is not what holds in general.
        general = {link.newer: link for link in self._holding.values()}
        links = self._ended | (general if asked == "usual" else self._holding)
        return {row: link.probability for row, link in links.items()}

    def _held_in(self, row: int, times: Sequence[tuple[int, int]]) -> bool:
        end = self.superseded[row].since if row in self.superseded else FOREVER
        end = min(end, self._over[row].until) if row in self._over else end
        return any(self._at[row] < last and first < end for first, last in times)

    def _certainty(self, row: int, meant: Sequence[int]) -> float:
        ended = (self._ended[each] for each in (*meant, row) if each in self._ended)
        return max((link.probability for link in ended), default=0.0)


def _asked_times(state: SearchState) -> list[tuple[int, int]]:
    """Return the times that the query names and that are over, in microseconds since 1970."""
    reading = state.reading
    if reading is None:
        return []
    found = []
    for reference in reading.references:
        interval = reference.interval
        if reference.kind != "interval" or interval is None or interval.end is None:
            continue
        end = to_microseconds(interval.end)
        if end <= state.request.now:
            start = 0 if interval.start is None else to_microseconds(interval.start)
            found.append((start, end))
    return found


def _move(probability: NDArray[np.float64], group: _Group, place_of: dict[int, int]) -> None:
    """Change the probabilities of one topic's candidates in place."""
    own = probability.copy()
    moved = [
        (place_of[row], [place_of[heir] for heir in group.heirs[row]], sure)
        for row, sure in group.unwanted.items()
        if row in place_of and group.heirs[row]
    ]
    for place, heirs, sure in moved:
        best = max(own[heir] for heir in heirs)
        for heir in heirs:
            share = own[heir] / best if best > 0 else 1.0
            probability[heir] = max(probability[heir], own[place] * sure * share)
    for place, heirs, sure in moved:
        top = max(probability[heir] for heir in heirs)
        probability[place] = min(own[place] * (1 - sure), np.nextafter(top, 0))
    for row, followers in group.followers.items():
        tops = [probability[place_of[each]] for each in followers if each in place_of]
        if row in place_of and tops:
            place = place_of[row]
            probability[place] = min(probability[place], np.nextafter(min(tops), 0))


def _exchange(
    groups: Sequence[_Group], place_of: dict[int, int], probability: NDArray[np.float64]
) -> IntArray:
    """Return an order in which the states of a topic share their places, those wanted first."""
    order = np.arange(len(probability))
    for group in groups:
        rows = [row for row in group.visible if row in place_of]
        places = sorted(place_of[row] for row in rows)
        rank_of = group.ranks()
        rows.sort(key=lambda row: (rank_of[row], place_of[row]))
        order[places] = [place_of[row] for row in rows]
    return order
