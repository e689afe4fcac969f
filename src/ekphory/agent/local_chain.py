"""Following a question from memory to memory without a language model."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod

from ekphory.agent.provider import QueryRefused, SearchTool, folded, words_in
from ekphory.agent.question import Branch, Item, Relation, meaning_words, names_in, relation
from ekphory.agent_trace import BRANCH
from ekphory.errors import ModelError, ServiceError
from ekphory.models.reranker import RelevanceScores, RerankingModel, RerankPassage, RerankQuery
from ekphory.retrieval.lexical import passage_terms, query_terms
from ekphory.types import Hit

# A thread: the links found so far from an anchor towards what is asked.


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a thread.

    Attributes:
        query: What was looked for.
        answer: The name that was found; empty for the last step, which ends at a memory.
        hit: The memory that states it.
        score: How well it fits, above 0; orders threads.
        margin: That score over the next one's.
        support: What was found after it says for it, in [0, 1].
        confidence: Probability in [0, 1] that it is right.
    """

    query: str
    answer: str
    hit: Hit
    score: float
    margin: float = 1.0
    support: float = 0.0
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Thread:
    """The links so far.

    Attributes:
        entity: What the next step starts from.
        links: In order.
    """

    entity: str
    links: tuple[Link, ...] = ()

    @property
    def priority(self) -> float:
        """The geometric mean of the links' scores; 1 without a link."""
        if not self.links:
            return 1.0
        return prod(link.score for link in self.links) ** (1 / len(self.links))

    @property
    def confidence(self) -> float:
        """Probability in [0, 1] that all links are right."""
        return prod(link.confidence for link in self.links)

    @property
    def chain(self) -> tuple[str, ...]:
        """What was found so far, each `query: answer`."""
        return tuple(f"{link.query}: {link.answer}" for link in self.links if link.answer)

    def then(self, link: Link) -> Thread:
        """Return the thread with one more link."""
        return Thread(link.answer or self.entity, (*self.links, link))


# How sure a link of a chain is: ratings whose weights were chosen by hand, no probabilities.

_LEAST = 1e-3
_MOST = 20.0


_NAME_WEIGHTS = (1.5, 1.2, 0.5, 2.0)
"""For a name that stands in a relation: intercept, fit, margin, support."""
_EVIDENCE_WEIGHTS = (1.0, 1.0, 0.3, 1.0)
"""For the memory at the end; likewise."""


def _rate(link: Link) -> float:
    """Return how sure a link is, in [0, 1]; it orders links, and is right less often.

    It is 1 / (1 + exp(-(intercept + fit·ln fit + margin·ln margin + support·support))). The score
    counts as at least a thousandth, the margin as between 1 and 20.
    """
    intercept, fit, margin, support = _NAME_WEIGHTS if link.answer else _EVIDENCE_WEIGHTS
    logit = (
        intercept
        + fit * math.log(max(link.score, _LEAST))
        + margin * math.log(min(max(link.margin, 1.0), _MOST))
        + support * link.support
    )
    return 1 / (1 + math.exp(-logit))


ENOUGH = 0.8
"""Rating of a whole chain from which no other lead is tried."""


# How much a memory counts as evidence for a hop, given what the chain has found so far.

_log = logging.getLogger("ekphory.agent")
MOST_RERANKED = 10
_HEAD_WORDS = 6
_RANK_DISCOUNT = 0.1


@dataclass(frozen=True, slots=True)
class Rated:
    """A memory and how much it counts, in [0, 1]."""

    hit: Hit
    weight: float


def rate_evidence(
    hits: Sequence[Hit], query: str, *, chain: Sequence[str], reranker: RerankingModel | None
) -> list[Rated]:
    """Weigh the hits of a hop by their place, and by a reranker that knows the chain.

    Args:
        hits: Best first.
        query: What the hop looks for.
        chain: The hops before it, each `query: answer`.
        reranker: Reads the first ten; None leaves their order.
    """
    weights = [1 / (1 + _RANK_DISCOUNT * place) for place in range(len(hits))]
    head = list(hits[:MOST_RERANKED])
    if reranker is not None and head:
        asked = RerankQuery(query, context=tuple(chain))
        read = score_hits(head, asked, reranker, otherwise="the agent goes on without its reranker")
        if read is not None:
            highest = max(float(read.max()), 1e-6)
            weights[: len(head)] = [
                weight * (0.5 + 0.5 * float(score) / highest)
                for weight, score in zip(weights, read, strict=False)
            ]
    return [Rated(hit, weight) for hit, weight in zip(hits, weights, strict=True)]


def score_hits(
    hits: Sequence[Hit], query: RerankQuery, reranker: RerankingModel, *, otherwise: str
) -> RelevanceScores | None:
    """Return what a reranker makes of hits, None where it fails; the log then says `otherwise`."""
    memories = (hit.memory for hit in hits)
    passages = [RerankPassage(each.indexed_text, at=each.at, type=each.type) for each in memories]
    try:
        return reranker.score(query, passages)
    except (ServiceError, ModelError) as error:
        _log.warning("%s: %s", otherwise, error)
        return None


def aboutness(text: str, entity: str) -> float:
    """Measure in [0, 1] how far a text is about an entity: begins with it, or names it at all."""
    wanted, words, named = meaning_words(entity), words_in(text), words_in(entity)
    heads = (words, words[: _HEAD_WORDS + len(wanted)], words[: len(wanted) + 1])
    there, ahead, begins = (len(wanted.intersection(head)) / len(wanted) for head in heads)
    is_title = words[: len(named)] == named
    return 0.02 + 0.38 * there**3 + 0.3 * ahead**3 + 0.2 * begins**3 + 0.1 * is_title


# Leads: names in a memory that may be what the next step of a question looks for.

_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
_INITIAL = re.compile(r"\b[A-Z]\.")
_LONGEST = 4000
_ORIGIN = re.compile(
    r"(?:\w+(?:ian|ean|ish|ese|ican|ench)|German|Dutch|Greek|Swiss|Czech|Thai|Iraqi|Israeli|"
    r"Pakistani|Bengali|Tamil|Catalan|Roman|Norman|Saxon|Mexican|Texan|Indian)"
)
_BRACKETS = re.compile(r"\s*\([^()]*\)")
_PLACED = re.compile(r"\b(?:in|on|at|from|near|to|into|through) (?:the )?$", re.IGNORECASE)
_PLACE_FOR_PERSON = 0.3
_SPEAKER = 0.4
_OTHER_SENTENCE = 0.35
_LEADING_NUMBER = re.compile(r"\d+ ")


@dataclass(frozen=True, slots=True)
class Lead:
    """A name that a memory gives for a step.

    Attributes:
        name: The name as the memory writes it.
        hit: The memory.
        score: How well it fits, above 0; comparable within one step.
    """

    name: str
    hit: Hit
    score: float


def find_leads(
    evidence: Sequence[Rated], *, entity: str, relation: Relation, known: frozenset[str]
) -> list[Lead]:
    """Find what may stand in this relation to an entity, the best first, each name once.

    Args:
        evidence: What was found for the step.
        entity: What the step starts from.
        relation: What is sought.
        known: Words of the question, which name nothing new.
    """
    best: dict[frozenset[str], Lead] = {}
    speakers = {
        meaning_words(each.hit.memory.producer) for each in evidence if each.hit.memory.producer
    }
    for rated in evidence:
        memory = rated.hit.memory
        about = aboutness(memory.indexed_text[:_LONGEST], entity) * rated.weight
        for name, fit in _rate_names(memory.text[:_LONGEST], entity, relation, known):
            words = meaning_words(name)
            # Who says something is seldom whom it is about, and people call each other by name.
            factor = _SPEAKER if words in speakers else 1.0
            lead = Lead(name, rated.hit, about * fit * factor)
            if words not in best or best[words].score < lead.score:
                best[words] = lead
    return sorted(best.values(), key=lambda lead: -lead.score)


def states(text: str, relation: Relation) -> bool:
    """Whether a text has words for a relation."""
    return next(_find_cues(folded(text), relation), None) is not None


def strip_brackets(name: str) -> str:
    """Leave out what tells a name from others of the same words, as in "Imagine (song)"."""
    return _BRACKETS.sub("", name).strip() or name


def _rate_names(
    text: str, entity: str, relation: Relation, known: frozenset[str]
) -> Iterator[tuple[str, float]]:
    """Return the names of a text, each in its fullest form, and how well each fits."""
    lower = folded(text)
    if len(lower) != len(text):
        lower = text.lower()
    own = meaning_words(strip_brackets(entity))
    names = [name for name in names_in(text, style="memory") if _may_be_meant(text, name)]
    new = [name for name in names if not name.words <= known]
    cues = list(_find_cues(lower, relation))
    for place, name in enumerate(names):
        if name not in new or name.words <= own:
            continue
        nearness = max((_measure_nearness(text, name, cue) for cue in cues), default=0.0)
        fullest = max((each.text for each in new if name.words <= each.words), key=len)
        fit = 0.05 / (1 + 0.2 * place) + nearness
        is_place = name.text[-1].isdigit() or _PLACED.search(text[: name.start])
        if relation.is_person and is_place:
            fit *= _PLACE_FOR_PERSON
        yield _LEADING_NUMBER.sub("", fullest), fit


def _may_be_meant(text: str, name: Item) -> bool:
    """Whether it is a name of something, not where something comes from or a number."""
    if not any(letter.isalpha() for letter in name.text):
        return False
    last = name.text.split()[-1]
    follows = text[name.end : name.end + 2]
    return not (_ORIGIN.fullmatch(last) and follows[:1] in (" ", "-") and follows[1:].islower())


@dataclass(frozen=True, slots=True)
class _CuePlace:
    start: int
    end: int
    weight: float
    leads_on: bool


@cache
def _compile_cues(relation: Relation) -> tuple[tuple[re.Pattern[str], float, bool], ...]:
    """Return, for every cue, how it is found, its weight, and whether the name can only follow."""
    found = []
    for order, cue in enumerate(relation.cues):
        spelt = re.escape(cue).replace(r"\ …\ ", r" [^.\n]{3,90}? ").replace("…", ".")
        only_after = cue == "by" or cue.endswith((" of", " by", " to", " in", " and", " at"))
        found.append((re.compile(rf"\b{spelt}\b"), 1.0 - 0.04 * min(order, 8), only_after))
    return tuple(found)


def _find_cues(text: str, relation: Relation) -> Iterator[_CuePlace]:
    breaks = [found.start() for found in _SENTENCE_END.finditer(text)]
    for pattern, weight, only_after in _compile_cues(relation):
        for found in pattern.finditer(text):
            before = sum(place < found.start() for place in breaks)
            yield _CuePlace(found.start(), found.end(), weight / (1 + 0.1 * before), only_after)


def _measure_nearness(text: str, name: Item, cue: _CuePlace) -> float:
    if name.start >= cue.end:
        between, factor = text[cue.end : name.start], 1.0
    elif name.end <= cue.start and not cue.leads_on:
        between, factor = text[name.end : cue.start], 0.6
    else:
        return 0.0
    if _SENTENCE_END.search(_INITIAL.sub("", between)):
        if cue.leads_on:
            return 0.0
        factor *= _OTHER_SENTENCE
    return cue.weight * factor / (1 + 0.25 * len(_WORD.findall(between)))


# Follows one branch of a question to what is asked: the likeliest lead first, then others.

BEAM = 3
"""How many leads of a step are kept."""
_WEAKEST = 0.3
"""Share of the best lead's score below which a lead is not kept."""
_NAMED = 0.4
"""From here on a memory names the anchor."""
_ASKED_SHARE = 0.4
"""How much less a memory counts that holds nothing of what is asked."""
_ABOUT = 0.9
"""From here on a memory of the first lookup is about the anchor, and its own lookup is left out."""


@dataclass(slots=True)
class Follower:
    """Follows a branch.

    Attributes:
        branch: What to follow.
        tool: What searches.
        first: What the question's own lookup found.
        known: Words of the question, which name nothing new.
        most_calls: How many searches the branch may make.
        reranker: Weighs evidence given the chain; None for none.
        ended: The threads that were followed to their end.
        retries: How often another lead was tried.
    """

    branch: Branch
    tool: SearchTool
    first: Sequence[Hit]
    known: frozenset[str]
    most_calls: int
    reranker: RerankingModel | None = None
    ended: list[Thread] = field(default_factory=list)
    retries: int = 0
    _open: list[Thread] = field(default_factory=list)
    _calls: int = 0

    def follow(self) -> None:
        """Follow the threads, until one is sure enough or the calls are spent.

        Raises:
            SessionFault: No call or no time is left; what was found so far is in `best`.
        """
        self.branch = _expand_branch(self.branch, self.first)
        self._open = [Thread(self.branch.anchor)]
        while self._open:
            thread = self._open[0]
            if len(thread.links) < len(self.branch.steps):
                self._grow(thread)
                continue
            self.retries += bool(self.ended)
            self._finish(thread)
            is_sure = self.best is not None and self.best.confidence >= ENOUGH
            if is_sure or self._calls >= self.most_calls:
                return

    @property
    def best(self) -> Thread | None:
        """The likeliest thread that was followed to its end, else the likeliest open one."""
        if self.ended:
            return max(self.ended, key=lambda thread: thread.confidence)
        return next((rate_links(thread) for thread in self._open if thread.links), None)

    def _grow(self, thread: Thread) -> None:
        step = self.branch.steps[len(thread.links)]
        kind = "" if thread.links else self.branch.kind
        query = f"{step} of {f'{kind} {thread.entity}'.strip()}"
        evidence = self._evidence(thread, query)
        found = find_leads(
            evidence, entity=thread.entity, relation=relation(step), known=self.known
        )
        self._open.remove(thread)
        scores = [*(lead.score for lead in found), 0.0]
        for lead, following in zip(found[:BEAM], scores[1:], strict=False):
            if lead.score >= _WEAKEST * scores[0]:
                margin = lead.score / max(following, 1e-6)
                link = Link(query, lead.name, lead.hit, lead.score, margin)
                self._open.append(thread.then(link))
        self._open.sort(key=lambda each: -each.priority)
        del self._open[BEAM:]

    def _evidence(self, thread: Thread, query: str) -> list[Rated]:
        texts = (hit.memory.indexed_text for hit in self.first)
        is_about = not thread.links and any(aboutness(t, thread.entity) >= _ABOUT for t in texts)
        hits = self.first if is_about else self._search(query) or self.first
        return rate_evidence(hits, query, chain=thread.chain, reranker=self.reranker)

    def _finish(self, thread: Thread) -> None:
        query = self.branch.asked_of(thread.entity)
        taken = {link.hit.id for link in thread.links}
        hits = self._search(query)
        self._open.remove(thread)
        found = rate_evidence(hits, query, chain=thread.chain, reranker=self.reranker)
        new = [each for each in found if each.hit.id not in taken]
        fits = [_measure_evidence(each, thread.entity, self.branch) for each in new]
        if new:
            best, *others = sorted(fits, reverse=True)
            hit = new[fits.index(best)].hit
            margin = best / max(others[0], 1e-6) if others else 1.0
            thread = thread.then(Link(query, "", hit, best, margin, support=hit.score))
        self.ended.append(rate_links(thread))

    def _search(self, query: str) -> Sequence[Hit]:
        self._calls += 1
        try:
            return self.tool(query, actor=BRANCH)
        except QueryRefused:
            return ()


def _measure_evidence(found: Rated, entity: str, branch: Branch) -> float:
    """How far a memory is about the entity, and holds what is asked of it."""
    text = found.hit.memory.indexed_text
    asked = set(query_terms(branch.asked_of("")).tolist())
    held = len(asked.intersection(passage_terms(text).tolist())) / len(asked) if asked else 0.0
    if branch.sought is not None and states(text, relation(branch.sought)):
        held = 1.0
    return aboutness(text, entity) * found.weight * (1 - _ASKED_SHARE + _ASKED_SHARE * held)


def _expand_branch(branch: Branch, first: Sequence[Hit]) -> Branch:
    """Let a relation that no memory states, as that of an aunt, go through others."""
    sought = relation(branch.sought) if branch.sought else None
    if sought is None or not sought.through:
        return branch
    word = sought.word.split()[-1]
    texts = (hit.memory.indexed_text for hit in first[:BEAM])
    if any(word in text.lower() and aboutness(text, branch.anchor) >= _NAMED for text in texts):
        return branch
    *steps, last = sought.through
    return replace(branch, steps=(*branch.steps, *steps), opening=f"{last} of ", sought=last)


def rate_links(thread: Thread) -> Thread:
    """Return the thread with the confidence of each link, which what came after it decides with."""
    links: list[Link] = []
    after = [*(min(link.score, 1.0) for link in thread.links[1:]), 0.0]
    for link, support in zip(thread.links, after, strict=False):
        supported = replace(link, support=support) if link.answer else link
        links.append(replace(supported, confidence=_rate(supported)))
    return Thread(thread.entity, tuple(links))
