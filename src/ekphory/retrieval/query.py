"""What a query is found to be: its own text, its type, intent and depth."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from ekphory.errors import InvalidInput

# What a query is found to be.

Intent = Literal["lookup", "temporal", "preference", "procedural", "comparison", "chain"]

INTENTS: tuple[Intent, ...] = (
    "lookup",
    "temporal",
    "preference",
    "procedural",
    "comparison",
    "chain",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryHints:
    """What the words of a query say about the memories that are wanted; each in [0, 1], 0: nothing.

    Attributes:
        importance: Important ones, as in "the most important".
        episodic: What happened, as in "last time".
        semantic: Preferences and standing facts, as in "my preference".
        procedural: How something is done, as in "how do I".
    """

    importance: float = 0.0
    episodic: float = 0.0
    semantic: float = 0.0
    procedural: float = 0.0

    @property
    def given(self) -> dict[str, float]:
        """Return the hints that say something, by name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) > 0}


NO_HINTS = QueryHints()


@dataclass(frozen=True, slots=True)
class QueryClass:
    """What kind of query it is.

    Attributes:
        intent: `lookup` one fact, also where nothing else is recognised; `temporal` when, how long,
            in what order, or within what time; `preference` tastes, habits and opinions;
            `procedural` how something is done; `comparison` several things against each other;
            `chain` something described through something else, which must be found first.
        complexity: In [0, 1]; grows with clauses, names and length.
        signals: Names of the rules that spoke, in the order in which they are listed; no text.
        hints: What is said about the memories that are wanted.
    """

    intent: Intent
    complexity: float
    signals: tuple[str, ...] = ()
    hints: QueryHints = NO_HINTS


# What a cue is: words that say what a query is after.


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """Phrases that mean the same.

    Attributes:
        signal: Its name in the trace.
        phrases: Separated by commas, in lower case. Of phrases that begin at one word the longest
            counts. One with Chinese or Japanese characters is looked for anywhere.
        intent: What they speak for; None where they only give hints.
        weight: How strongly; of several intents the heaviest sum wins, if it reaches 1.
        hints: What they say about the memories that are wanted.
    """

    signal: str
    phrases: str
    intent: Intent | None = None
    weight: float = 0.0
    hints: QueryHints = NO_HINTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A pattern over the kinds of words, one letter a word, as `words.py` gives them.

    Attributes:
        signal: Its name in the trace.
        pattern: Matches anywhere in the letters.
        intent, weight, hints: As those of a cue.
    """

    signal: str
    pattern: re.Pattern[str]
    intent: Intent | None = None
    weight: float = 0.0
    hints: QueryHints = NO_HINTS


# Which English words are of which kind; a kind is one letter, so that patterns can name it.

OTHER = "x"
POSSESSIVE = "'"
PARTICIPLE = "h"
NUMBER = "#"
DATE = "n"
RELATIVE = "k"

# A word in several kinds has the first of them.
_WORDS: Mapping[str, str] = {
    # Question words.
    "w": "what which who whom whose",
    "W": "where why",
    "Q": "when",
    "H": "how",
    # What opens a clause on a noun; `who`, `which` and `where` after a noun join it.
    "T": "that",
    # Small words: of, articles, possessives, pronouns that are subjects, other pronouns.
    "o": "of",
    "d": "the a an",
    "m": "my our your his her their its",
    "I": "i we he she they",
    "i": "you it me us him them",
    "a": "and",
    "v": "or",
    "t": "than",
    "e": "by from in on at with for about to into behind near",
    # Verbs: be, was, do, did and had, would, other auxiliaries.
    "b": "is are am be been",
    "B": "was were",
    "D": "do does",
    "U": "did had",
    "V": "would",
    "u": "have has can could will should must shall may might can't",
    # Times: before and after; past and coming ones; units; days and months.
    "z": "before after since during until till",
    "q": "last past previous",
    "f": "next this coming these",
    "y": "second seconds minute minutes hour hours day days week weeks weekend weekends month "
    "months quarter quarters year years decade decades century summer winter autumn fall spring "
    "season sprint semester term morning afternoon evening night nights time times",
    DATE: "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays "
    "thursdays fridays saturdays sundays january february april june july august september "
    "october november december christmas easter",
    NUMBER: "one two three four five six seven eight nine ten eleven twelve few couple several",
    # People by what they are to somebody or something.
    "r": "father mother dad mum mom parent parents wife husband spouse partner girlfriend "
    "boyfriend fiancée fiancé fiance fiancee brother sister sibling siblings brothers sisters "
    "son daughter sons daughters child children kid kids uncle aunt cousin cousins nephew niece "
    "grandfather grandmother grandparents grandson granddaughter boss manager supervisor mentor "
    "coach teacher professor student tutor colleague coworker teammate friend friends neighbour "
    "neighbor neighbours neighbors roommate flatmate landlord landlady tenant owner employer "
    "employee assistant secretary director producer author writer editor translator publisher "
    "composer singer performer painter artist architect designer engineer founder cofounder "
    "inventor creator maker manufacturer builder baker doctor nurse lawyer leader captain mayor "
    "president minister king queen maintainer reviewer predecessor successor headquarters "
    "birthplace hometown capital penfriend",
    # Who and what is often described by a clause.
    "p": "person people man woman guy girl boy lady team company firm startup city town village "
    "country region place restaurant café cafe hotel clinic hospital school university college "
    "office shop store book novel film movie song album piece service library database website "
    "band club group agency bank house building street river show series project tool framework "
    "program device product bug patch page job",
    # More and most.
    "c": "more less fewer better worse older younger elder newer earlier later longer shorter "
    "taller higher lower bigger larger smaller greater cheaper pricier faster slower quicker "
    "closer nearer farther further heavier lighter harder easier stronger weaker warmer colder "
    "hotter cooler louder quieter cleaner safer healthier happier richer poorer simpler wider "
    "narrower deeper thicker thinner brighter darker busier fresher sweeter softer milder",
    "s": "most least best worst oldest youngest longest shortest tallest highest lowest biggest "
    "largest smallest greatest cheapest fastest slowest quickest closest nearest farthest furthest "
    "heaviest lightest hardest easiest strongest weakest warmest coldest hottest loudest quietest "
    "safest healthiest happiest richest simplest widest deepest busiest",
    # Liking, what makes `like` a comparison, and choosing.
    "l": "like likes liked love loves loved enjoy enjoys enjoyed hate hates hated adore adores "
    "dislike dislikes disliked",
    "g": "look looks looked sound sounds sounded feel feels felt seem seems seemed smell smells "
    "taste tastes something anything things stuff just",
    "G": "choose pick eat drink wear want buy order stand",
    # What one has as a fact.
    "F": "name names birthday birthdays address addresses phone number numbers email mail password "
    "passport profession occupation age size height weight diet allergy allergies surname "
    "nickname salary handle username account nationality",
    # What was done; regular ones are known by their ending.
    PARTICIPLE: "said told went saw met came gave made took got found bought sold sent wrote spoke "
    "fed done built kept paid written run set",
}

KIND_OF: Mapping[str, str] = {
    word: letter for letter, words in reversed(tuple(_WORDS.items())) for word in words.split()
}
OPENS_A_CLAUSE = frozenset({"who", "whom", "which", "whose", "where"})
NAMED_MONTHS = frozenset({"May", "March"})
"""Months only where they are written as names."""


# Splits a query into words, and says of which kind each one is.

# A mark between words counts as a word, so that no pattern reaches across it unawares.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[?!;,](?=\s+\w)")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NOUNS = frozenset("xprFh")
_BEFORE_IS = frozenset("wWQHIiT")


@dataclass(frozen=True, slots=True)
class Words:
    """A query's words.

    Attributes:
        given: As written, possessives split off.
        lower: In lower case.
        kinds: One letter a word, as in `word_kinds.py`.
    """

    given: tuple[str, ...]
    lower: tuple[str, ...]
    kinds: str


def words_of(text: str) -> Words:
    """Split a text into words."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text).replace("’", "'")
    given: list[str] = []
    for word in _WORD.findall(composed):
        given.extend(_parts(word))
    lower = tuple(word.lower() for word in given)
    return Words(tuple(given), lower, _kinds(given, lower))


def _parts(word: str) -> tuple[str, ...]:
    stem, apostrophe, ending = word.rpartition("'")
    if not apostrophe or ending not in ("s", "S"):
        return (word,)
    is_verb = KIND_OF.get(stem.lower(), OTHER) in _BEFORE_IS or stem.lower() in ("here", "there")
    return (stem, "is" if is_verb else "'s")


def _kinds(given: Sequence[str], lower: Sequence[str]) -> str:
    kinds: list[str] = []
    for place, word in enumerate(lower):
        kind = KIND_OF.get(word, OTHER)
        if word == "'s":
            kind = POSSESSIVE
        elif word.isdigit():
            kind = DATE if _YEAR.fullmatch(word) else NUMBER
        elif place and given[place] in NAMED_MONTHS:
            kind = DATE
        elif kind == OTHER and word.endswith("ed") and len(word) > 4:
            kind = PARTICIPLE
        elif word in OPENS_A_CLAUSE and kinds and kinds[-1] in _NOUNS:
            kind = RELATIVE
        kinds.append(kind)
    return "".join(kinds)


# English patterns over kinds of words: descriptions within descriptions, comparatives, times.

_PAST = QueryHints(episodic=0.7)
_TASTE = QueryHints(semantic=0.9)
_HOW = QueryHints(procedural=0.9)
_FACT = QueryHints(semantic=0.6)
# A noun of any kind, and what may stand before one; the letters are those of `word_kinds.py`.
_NOUN = "[xprhF]"
_THE = "[dm]"
_AUXILIARY = "[DUVu]"


def _shape(
    signal: str,
    pattern: str,
    intent: Intent | None,
    weight: float = 0.0,
    hints: QueryHints = NO_HINTS,
) -> Shape:
    return Shape(
        signal=signal, pattern=re.compile(pattern), intent=intent, weight=weight, hints=hints
    )


CHAIN_SHAPES: tuple[Shape, ...] = (
    # The husband of my teacher; the grandfather of Livia's cousin.
    _shape("relation of a relation", rf"[rp]o{_THE}?{_NOUN}{{0,2}}'?{_NOUN}?r", "chain", 1.6),
    # My sister's boss; Otto's dog's name.
    _shape("possessive of a relation", rf"r'{_NOUN}?r|'{_NOUN}{{1,2}}'", "chain", 1.6),
    # The manager of the person who wrote it; the population of the town my parents left.
    _shape("one described by a clause", rf"(?<!F)o{_THE}{_NOUN}{{1,2}}(?:[kT]|mr)", "chain", 1.1),
    # Where does the man who fixed it live? Which wine does the friend I met like?
    _shape(
        "asks about one described",
        rf"{_AUXILIARY}{_THE}(?:{_NOUN}{{1,2}}[kI]|{_NOUN}T)",
        "chain",
        1.6,
    ),
    # Where does the daughter of our landlord live?
    _shape("asks about a relation", rf"{_AUXILIARY}{_THE}r(?:o|e{_THE}?{_NOUN})", "chain", 1.2),
    # Who fixed the bug that broke it? Which team owns the service that the job needs?
    _shape("done to one described", rf"^w{_NOUN}{{1,3}}{_THE}{_NOUN}{{1,2}}[kT]", "chain", 1.4),
    # The university where Anja's supervisor works; the country Ravi's wife comes from.
    _shape("place of a relation", rf"pk?{_THE}?{_NOUN}?'r", "chain", 1.3),
    # The birthplace of the composer of the piece.
    _shape("relation within of", rf"o{_THE}{_NOUN}?[rp]o", "chain", 1.3),
    # Who recommended the plumber, and where do they live?
    _shape("asks on", r".{3}a[wWQH][DUVubB].*[kTIi]", "chain", 1.0),
)

COMPARISON_SHAPES: tuple[Shape, ...] = (
    _shape("more than", r"c.{0,7}t", "comparison", 2.0),
    # Which is older, this or that? Not: four or more.
    _shape("more, this or that", r"c.*v(?!c)|v(?!c).*c", "comparison", 1.8),
    _shape("which is more", r"^w.{0,4}c", "comparison", 1.0),
    _shape("the most of some", r"^w.{0,2}o.*s|^w.*o.*ds", "comparison", 1.4),
    _shape("the most", r"^w.{0,5}ds", "comparison", 1.0),
    _shape("this or that", r"^[wDUVubB].*[dx]v[dx]", "comparison", 0.9),
)

TEMPORAL_SHAPES: tuple[Shape, ...] = (
    _shape("begins with when", r"^.?Q|aQ", "temporal", 1.5),
    _shape("within a past time", r"q#?y|qn", "temporal", 1.4, _PAST),
    _shape("within a time", r"f#?[yn]|#y|en", "temporal", 1.1),
    _shape("names a day or month", r"n", "temporal", 1.0),
    _shape("before or after", r"z", "temporal", 1.0),
    _shape("past, at a time", r"[BUh].*(?:[nz]|fy)|[nz].*[BU]", "temporal", 0.0, _PAST),
)

PREFERENCE_SHAPES: tuple[Shape, ...] = (
    # What does she like? What snacks do we love? Restaurants I liked.
    # Not: what does it look like, what will it be like, I would like to.
    _shape(
        "asks what one likes", r"^(?!.*[gbV]l).*(?:[DUV][^uhb]{1,6}l|Il)", "preference", 2.6, _TASTE
    ),
    # What would my wife choose? What can't my nephew stand?
    _shape("asks what one would take", r"V.{1,3}G|um.G", "preference", 1.0, _TASTE),
)

PROCEDURAL_SHAPES: tuple[Shape, ...] = (
    # How is it fed? How are invoices approved here?
    _shape("asks how it is done", r"^Hb.*h.?$", "procedural", 1.0, _HOW),
)

FACT_SHAPES: tuple[Shape, ...] = (
    # My passport number; Petra's phone number.
    _shape("asks for a fact about one", r"(?:m.?|')[xprF]{0,2}F", None, hints=_FACT),
)

ENGLISH_SHAPES: tuple[Shape, ...] = (
    *CHAIN_SHAPES,
    *COMPARISON_SHAPES,
    *TEMPORAL_SHAPES,
    *PREFERENCE_SHAPES,
    *PROCEDURAL_SHAPES,
    *FACT_SHAPES,
)


# English cues.

_ENGLISH_PAST = QueryHints(episodic=0.8)
_MAYBE_PAST = QueryHints(episodic=0.5)
_SOLVING = "fix solve resolve repair configure install debug restore clean get make build set"
_SOLVED = ", ".join(
    f"how did {who} {verb}" for who in ("i", "we", "you") for verb in _SOLVING.split()
)

TEMPORAL_CUES: tuple[Cue, ...] = (
    Cue(
        signal="asks when it was",
        phrases="when did, when was, when were, when had, when have, how long ago, last time",
        intent="temporal",
        weight=2.0,
        hints=_ENGLISH_PAST,
    ),
    Cue(
        signal="asks when",
        phrases="""
            when is, when are, when does, when do, when will, when should, when can, what time,
            which time, what day, which day, what date, which date, what month, which month,
            what year, which year, what week, which week, since when, until when, how long,
            how often, how many days, how many weeks, how many months, how many years,
            how many hours, how many minutes, date of, deadline, deadlines, due date, schedule,
            expire, expires, expiry
        """,
        intent="temporal",
        weight=1.5,
    ),
    Cue(
        signal="names a past time",
        phrases="""
            yesterday, last night, ago, the other day, earlier today, recently, lately,
            most recent, latest, newest, previously, earlier this, back in, so far this
        """,
        intent="temporal",
        weight=1.2,
        hints=_ENGLISH_PAST,
    ),
    Cue(
        signal="names a time",
        phrases="""
            today, tonight, tomorrow, this morning, this afternoon, this evening, at noon,
            upcoming, christmas, new year, easter, thanksgiving, halloween
        """,
        intent="temporal",
        weight=1.1,
    ),
    Cue(
        signal="asks for an order",
        phrases="""
            in which order, in what order, which order, what order, the first time,
            the first thing, the last thing, timeline, chronology, how many times
        """,
        intent="temporal",
        weight=1.3,
        hints=_MAYBE_PAST,
    ),
)

PREFERENCE_CUES: tuple[Cue, ...] = (
    Cue(
        signal="asks for a preference",
        phrases="""
            prefer, prefers, preferred, preference, preferences, favourite, favourites, favorite,
            favorites, would rather, i'd rather, we'd rather, he'd rather, she'd rather,
            they'd rather, rather have, rather drink, rather eat
        """,
        intent="preference",
        weight=2.2,
        hints=QueryHints(semantic=1.0),
    ),
    Cue(
        signal="asks for likes",
        phrases="""
            fond of, keen on, can't stand, cannot stand, crazy about, a fan of, appreciate,
            appreciates, pet peeve, pet peeves, annoy, annoys, happy, loyal to, sick of
        """,
        intent="preference",
        weight=1.2,
        hints=_TASTE,
    ),
    Cue(
        signal="asks for an opinion",
        phrases="""
            opinion, opinions, think of, think about, thinks of, thinks about, feel about,
            feels about, view on, views on, taste in, tastes in, interested in, interests,
            passionate about, hobby, hobbies, stance on
        """,
        intent="preference",
        weight=1.6,
        hints=_TASTE,
    ),
    Cue(
        signal="asks for a habit",
        phrases="""
            my usual, his usual, her usual, usual order, do i usually, usually order,
            usually pick, usually choose, usually eat, usually drink, usually take, usually buy,
            morning person, night owl, take my coffee, take his coffee, take her coffee,
            take my tea, take his tea, take her tea
        """,
        intent="preference",
        weight=1.6,
        hints=_TASTE,
    ),
    Cue(
        signal="asks how to answer",
        phrases="""
            do i want, want from you, style of answers, what tone, which tone, tone should you,
            should you address me, should you call me, important to me, thing to me, things to me,
            most to me
        """,
        intent="preference",
        weight=1.2,
        hints=_TASTE,
    ),
)

PROCEDURAL_CUES: tuple[Cue, ...] = (
    Cue(
        signal="asks how to",
        phrases="""
            how do i, how do we, how do you, how do they, how does one, how to, how can i,
            how can we, how can one, how could i, how could we, how should i, how should we,
            how would i, how would we, how would you, how must, how shall, how am i supposed,
            how are we supposed, the way to, best way to, right way to, a way to, way we, ways to,
            explain how, show me how, remind me how, teach me
        """,
        intent="procedural",
        weight=2.0,
        hints=_HOW,
    ),
    Cue(
        signal="asks how it was solved",
        phrases=_SOLVED,
        intent="procedural",
        weight=2.0,
        hints=_HOW,
    ),
    Cue(
        signal="asks how it goes",
        phrases="how does",
        intent="procedural",
        weight=1.0,
        hints=QueryHints(procedural=0.6),
    ),
    Cue(
        signal="asks what to do",
        phrases="""
            what do i do, what do we do, what should i do, what should we do, what must i do,
            what must we do, what do i have to do, what do we have to do, what do i need to do,
            what to do, what needs to be done
        """,
        intent="procedural",
        weight=1.8,
        hints=_HOW,
    ),
    Cue(
        signal="names a procedure",
        phrases="""
            step, steps, step by step, procedure, procedures, process for, process of,
            instructions, instruction, guide, guidelines, tutorial, recipe, recipes, checklist,
            workflow, walk me through, runbook, playbook, howto, how tos, best practice,
            best practices, convention for, conventions for, our convention, our conventions,
            naming convention, naming conventions, troubleshoot, troubleshooting, workaround,
            trick for, trick to, protocol for, routine for, settings for
        """,
        intent="procedural",
        weight=1.4,
        hints=_HOW,
    ),
    Cue(
        signal="asks for a command",
        phrases="""
            which command, what command, command for, command to, commands for, commands to,
            which flag, what flag, which script, what script, which settings, what settings
        """,
        intent="procedural",
        weight=1.6,
        hints=_HOW,
    ),
)

COMPARISON_CUES: tuple[Cue, ...] = (
    Cue(
        signal="compares",
        phrases="""
            compare, compares, compared, comparing, comparison, comparisons, versus, vs,
            difference, differences, differ, differs, different from, distinguish, distinguishes,
            contrast, pros and cons, advantage, advantages, disadvantage, disadvantages, upsides,
            downsides, trade off, trade offs, tradeoff, tradeoffs, in common, similar, similarity,
            similarities, as opposed to, which of the two, of the two, of both, outperform
        """,
        intent="comparison",
        weight=2.2,
    ),
    Cue(
        signal="asks for sameness",
        phrases="the same, both, alike, each of them, as much as, as many as, equally",
        intent="comparison",
        weight=1.0,
    ),
    Cue(
        signal="sets two apart",
        phrases="came first, came out first, come first, come out first, changed between",
        intent="comparison",
        weight=1.4,
    ),
)

CHAIN_CUES: tuple[Cue, ...] = (
    Cue(
        signal="says steps",
        phrases="""
            based on who, based on what, based on which, based on where, then tell, then find,
            then say, and from there, and then what, that person, whoever
        """,
        intent="chain",
        weight=1.2,
    ),
)

# They say nothing, and keep a part of them from being read as something.
SET_PHRASES: tuple[Cue, ...] = (
    Cue(
        signal="set phrase",
        phrases="""
            happy birthday, happy hour, happy new year, how many steps, named after, look after,
            looks after, looked after, after all, ask after, one time password, time zone,
            time zones, full time, part time, real time, run time, day care, day job,
            would like to, at the same time
        """,
    ),
)

HINT_CUES: tuple[Cue, ...] = (
    Cue(
        signal="asks for the most important",
        phrases="""
            most important, matter most, matters most, mattered most, top priority,
            top priorities, highest priority, most critical, most crucial, most essential,
            most significant, most relevant, number one priority
        """,
        hints=QueryHints(importance=1.0),
    ),
    Cue(
        signal="asks for the important",
        phrases="""
            important, crucial, critical, essential, essentials, vital, must remember,
            must not forget, must i not forget, mustn't forget, never forget, don't forget,
            do not forget, should not forget, shouldn't forget, key point, key points,
            key takeaway, key takeaways, key decision, key decisions, key fact, key facts,
            key lesson, key lessons, key insight, key insights, key findings, main point,
            main points, main takeaway, main takeaways, main decision, main decisions,
            main lesson, main lessons, biggest lesson, urgent, priorities, highlights
        """,
        hints=QueryHints(importance=0.8),
    ),
    Cue(
        signal="asks what happened",
        phrases="""
            what happened, that happened, what has happened, what's happened, happened with,
            happened to, happened at, went wrong, what went on, how did it go, what took place
        """,
        hints=_ENGLISH_PAST,
    ),
    Cue(
        signal="asks for a fact",
        phrases="""
            do you know about me, know about me, facts about, fact about, allergic, allergy,
            allergies, blood type, about myself, profile of, my name
        """,
        hints=QueryHints(semantic=0.8),
    ),
)

ENGLISH_CUES: tuple[Cue, ...] = (
    *TEMPORAL_CUES,
    *PREFERENCE_CUES,
    *PROCEDURAL_CUES,
    *COMPARISON_CUES,
    *CHAIN_CUES,
    *SET_PHRASES,
    *HINT_CUES,
)


# A few cues of German, French, Spanish, Chinese and Japanese.
#
# What is said in another language, or in other words, is a `lookup`.

_FOREIGN_PAST = QueryHints(episodic=0.8)
_IMPORTANT = QueryHints(importance=0.9)

FOREIGN_CUES: tuple[Cue, ...] = (
    Cue(
        signal="asks when it was",
        phrases="""
            wann haben, wann hat, wann habe, wann war, wann waren, wann wurde, wann hatte,
            quand avons, quand ai, quand a, quand as, quand ont, quand était, cuándo fue,
            cuándo hice, cuándo compramos, cuándo hicimos, cuándo vi, cuándo vino
        """,
        intent="temporal",
        weight=2.0,
        hints=_FOREIGN_PAST,
    ),
    Cue(
        signal="asks when",
        phrases="""
            wann, wie lange, seit wann, bis wann, wie oft, quand, depuis quand, combien de temps,
            à quelle heure, cuándo, desde cuándo, cuánto tiempo, a qué hora, 什么时候, 何时, 几点,
            多久, いつ, 何時, 何日, 何年
        """,
        intent="temporal",
        weight=1.6,
    ),
    Cue(
        signal="names a past time",
        phrases="""
            gestern, vorgestern, letzte, letzten, letzter, letztes, neulich, zuletzt, vorhin,
            fait hier, hier soir, avant hier, dernier, dernière, derniers, dernières, récemment,
            ayer, anteayer, pasado, pasada, anoche, última vez, hace poco, recientemente, 昨天,
            前天, 上周, 上个月, 去年, 上次, 最近, 刚才, 昨日, 一昨日, 先週, 先月, 前回, この前
        """,
        intent="temporal",
        weight=1.3,
        hints=_FOREIGN_PAST,
    ),
    Cue(signal="asks of the past", phrases="ましたか, でしたか", hints=QueryHints(episodic=0.5)),
    Cue(
        signal="asks for a preference",
        phrases="""
            am liebsten, lieblingsessen, lieblingsfarbe, lieblingsfilm, lieblingsbuch,
            lieblingsmusik, lieblingsort, lieblingsgetränk, bevorzuge, bevorzugt, mag ich,
            magst du, mag er, mag sie, vorliebe, vorlieben, préféré, préférée, préférés,
            préférées, préfère, j'aime, aime, favorito, favorita, favoritos, favoritas, prefiero,
            prefiere, me gusta, le gusta, 喜欢, 偏好, 最爱, 好きな, 好き, お気に入り, 好み
        """,
        intent="preference",
        weight=2.2,
        hints=_TASTE,
    ),
    Cue(
        signal="asks how to",
        phrases="""
            wie kann, wie richte, wie mache, wie macht, wie installiere, wie muss, wie soll,
            wie geht, wie funktioniert, wie ändere, wie setze, anleitung, schritte, comment faire,
            comment puis, comment peut, comment on, comment je, comment dois, étapes, cómo puedo,
            cómo se, cómo hago, cómo puede, cómo debo, cómo hacer, pasos para, 如何, 怎样, 步骤,
            怎么做, 怎么用, 怎么办, 怎么设置, 怎么安装, 怎么重启, 怎么修, 怎么才能,
            方法, やり方, 手順, どうやって
        """,
        intent="procedural",
        weight=2.0,
        hints=_HOW,
    ),
    Cue(
        signal="compares",
        phrases="""
            unterschied, unterschiede, vergleich, vergleiche, besser als, im vergleich,
            différence, différences, comparer, mieux que, par rapport, diferencia, diferencias,
            comparar, mejor que, 区别, 差别, 不同, 比较, 相比, 違い, 比較, どちらが
        """,
        intent="comparison",
        weight=2.2,
    ),
    Cue(
        signal="asks for the important",
        phrases="""
            wichtig, wichtige, wichtigen, wichtigste, wichtigsten, important, importants,
            importante, importantes, plus important, más importante, 重要, 大切, 肝心
        """,
        hints=_IMPORTANT,
    ),
)


# How much a query asks for at once.

_JOINS = frozenset(
    "and or but because if while although unless und oder aber weil wenn et ou mais si parce y o "
    "pero porque".split()
)


def complexity(words: Words) -> float:
    """Compute a number in [0, 1] from clauses, names and length; 0 for a plain question.

    0.2 for each further clause, 0.1 for each name or number after the first, and 0.02 for each
    word after the eighth.
    """
    clauses = words.kinds.count("k") + sum(word in _JOINS for word in words.lower)
    names = sum(word[0].isupper() or word[0].isdigit() for word in words.given[1:] if word != "I")
    length = sum(word[0].isalnum() for word in words.lower) - 8
    return round(min(1.0, 0.2 * clauses + 0.1 * max(0, names - 1) + 0.02 * max(0, length)), 2)


# How deep a query should be searched.

DEEPEST = 2.0
_EXTRA: Mapping[Intent, float] = MappingProxyType({"temporal": 0.25, "comparison": 0.5, "chain": 1})


def depth_factor(query_class: QueryClass | None) -> float:
    """Return what a search's depth is multiplied by, in [1, `DEEPEST`].

    A plain lookup, and a query of which nothing is known, has 1; a chain 2. Comparisons and
    questions about a time lie between, and complexity adds up to a half.
    """
    if query_class is None:
        return 1.0
    extra = _EXTRA.get(query_class.intent, 0.0) + 0.5 * query_class.complexity
    return min(1.0 + extra, DEEPEST)


# Says what kind of query it is, by rules over its words; no model, nothing stored.
#
# The rules are data: `english_cues.py`, `english_shapes.py`, `foreign_cues.py`. Every rule that
# speaks adds its weight to its intent; the heaviest wins if it reaches 1, else it is a `lookup`.

MOST_CHARACTERS = 2000
"""Characters of a query that are read, from its end."""
ENOUGH = 1.0
"""The weight at which an intent is taken."""

# A sentence ends where a word of five letters or more does, so that "Dr. Novak" stays whole.
_SENTENCE_END = re.compile(r"(?<=[?？!！。])\s*|(?<=[^\W\d_]{5}\.)\s+")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")

Rule = Cue | Shape
# The first words of phrases, each with the whole phrases that begin so, the longest first.
_Phrases = Mapping[str, Sequence[tuple[tuple[str, ...], Cue]]]


def classify_query(text: str) -> QueryClass:
    """Say what kind of query `text` is; see `QueryClass`.

    Of a text with statements and questions only the questions count. English first, with a few
    question words of German, French, Spanish, Chinese and Japanese; whatever else is a `lookup`.
    """
    asked = _asking_part(text[-MOST_CHARACTERS:])
    words = words_of(asked)
    found: list[Rule] = [*_cues_in(words, asked), *_shapes_in(words)]
    rules = list(dict.fromkeys(found))
    intent = _heaviest(rules)
    return QueryClass(
        intent,
        complexity(words),
        tuple(dict.fromkeys(rule.signal for rule in rules)),
        _hints(rules, intent),
    )


def _asking_part(text: str) -> str:
    sentences = [part for part in _SENTENCE_END.split(text) if part]
    asking = [part for part in sentences if part.rstrip().endswith(("?", "？"))]
    return " ".join(asking) if asking and len(asking) < len(sentences) else text


def _cues_in(words: Words, text: str) -> Iterator[Cue]:
    place = 0
    while place < len(words.lower):
        found = _phrase_at(words.lower, place)
        if found and (found[1].intent or found[1].hints.given):
            yield found[1]
        place += len(found[0]) if found else 1
    if not text.isascii():
        yield from (cue for mark, cue in _UNSPACED_MARKS if mark in text)


def _phrase_at(words: Sequence[str], place: int) -> tuple[tuple[str, ...], Cue] | None:
    for phrase, cue in _PHRASES.get(words[place], ()):
        if words[place : place + len(phrase)] == phrase:
            return phrase, cue
    return None


def _shapes_in(words: Words) -> Iterator[Shape]:
    return (shape for shape in ENGLISH_SHAPES if shape.pattern.search(words.kinds))


def _heaviest(rules: Iterable[Rule]) -> Intent:
    weights: dict[Intent, float] = dict.fromkeys(INTENTS, 0.0)
    for rule in rules:
        if rule.intent is not None:
            weights[rule.intent] += rule.weight
    # Of equal ones the later, which asks for more.
    best = max(reversed(INTENTS), key=weights.__getitem__)
    return best if weights[best] >= ENOUGH else "lookup"


def _hints(rules: Iterable[Rule], intent: Intent) -> QueryHints:
    strongest: dict[str, float] = defaultdict(float)
    for rule in rules:
        # What speaks for another intent was misread, or matters less.
        if rule.intent in (None, intent):
            for name, strength in rule.hints.given.items():
                strongest[name] = max(strongest[name], strength)
    return QueryHints(**strongest)


def _phrases_of(cue: Cue) -> list[str]:
    return [phrase.strip() for phrase in cue.phrases.split(",")]


def _by_first_word(cues: Iterable[Cue]) -> _Phrases:
    phrases: dict[str, list[tuple[tuple[str, ...], Cue]]] = defaultdict(list)
    for cue in cues:
        for phrase in _phrases_of(cue):
            if not _UNSPACED.search(phrase):
                words = words_of(phrase).lower
                phrases[words[0]].append((words, cue))
    return {
        first: sorted(found, key=lambda each: -len(each[0])) for first, found in phrases.items()
    }


_CUES = (*ENGLISH_CUES, *FOREIGN_CUES)
_PHRASES = _by_first_word(_CUES)
_UNSPACED_MARKS = tuple(
    (phrase, cue) for cue in _CUES for phrase in _phrases_of(cue) if _UNSPACED.search(phrase)
)


# What hosts of agents put around a message, as data: blocks, prefixes of lines, whole lines.
#
# The list is that of Memory-Spark's query cleaning, in the forms in which OpenClaw and its kin
# write it; everything needs a mark that people do not type, so that brackets and code in a question
# stay.


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text from a mark at which it opens to the next mark at which it closes.

    Attributes:
        name: What the trace calls it; None for what must be kept, whatever stands in it.
        opens: Matches its beginning, and begins with a plain character, which keeps scans fast.
        closes: Matches its end; matches nothing at all where `opens` is the whole block.
    """

    name: str | None
    opens: re.Pattern[str]
    closes: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class LineMark:
    """A mark at the start of a line, or a line that is nothing else."""

    name: str
    pattern: re.Pattern[str]


_METADATA_LABELS = (
    "Conversation info",
    "Sender",
    "Thread starter",
    "Replied message",
    "Forwarded message context",
    "Chat history since last reply",
)
_CHANNELS = (
    "Discord|Feishu|Google Chat|IRC|LINE|Matrix|Mattermost|MS Teams|Nostr|Signal|Slack|Telegram|"
    "Tlon|WebChat|WhatsApp|Zalo|iMessage"
)
_WEEKDAYS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_MOMENT = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?"
_ZONE = r"(?:Z| ?(?:UTC|GMT)?[+-]\d{1,2}(?::?\d{2})?| [A-Z]{2,5})?"
_EXTERNAL = r"<<<EXTERNAL_UNTRUSTED_CONTENT[^<>]{0,200}>>>"
_EXTERNAL_END = r"<<<END_EXTERNAL_UNTRUSTED_CONTENT[^<>]{0,200}>>>"


def _block(name: str | None, opens: str, closes: str = "") -> Block:
    return Block(name, re.compile(opens), re.compile(closes))


def _prefix(name: str, pattern: str) -> LineMark:
    return LineMark(name, re.compile(rf"{pattern}\s*+"))


def _line(name: str, pattern: str) -> LineMark:
    return LineMark(name, re.compile(pattern))


BLOCKS: tuple[Block, ...] = (
    _block(
        "conversation history",
        r"\[Chat messages since your last reply - for context\]",
        r"\[Current message - respond to this\]",
    ),
    *(
        _block("metadata", rf"{label} \(untrusted[^()\n]{{0,80}}\):\s{{0,20}}```", "```")
        for label in _METADATA_LABELS
    ),
    _block("metadata", r'```json\s{0,20}\{[^`]*?"message_id"', "```"),
    _block(
        "metadata", rf"Untrusted context \([^()\n]{{0,120}}\):\s{{0,20}}{_EXTERNAL}", _EXTERNAL_END
    ),
    _block("external content", _EXTERNAL, _EXTERNAL_END),
    _block("recalled memories", r"<relevant-memories(?:\s[^<>]{0,200})?>", "</relevant-memories>"),
    _block("summary", r'<summary\s[^<>]{0,200}?\bid="sum_[^<>]{0,200}>', "</summary>"),
    _block("comment", "<!--", "-->"),
    _block("attachment", r"\[media attached(?: \d{1,3}/\d{1,3})?:[^\[\]\n]{0,1000}\]"),
    _block(None, "```", "```"),
    _block(None, "`[^`\n]{1,200}`"),
)
"""In the order in which they are tried at one place."""

TASK_QUEUE = re.compile(
    r"""
    ^[^\S\n]*+ (?: \#\#\ Current\ Task\ Queue | \#\#\#\ 🔄\ In\ Progress )
    [^\S\n]*+ (?: \([^()\n]{0,80}\) )?+ :?+ [^\S\n]*+ $
    (?: \n[^\S\n]*+ (?: (?: [-*+•|>] | \d{1,3}[.)] | \#{3,6}\  ) [^\n]*+ | $ ) )*+
    """,
    re.MULTILINE | re.VERBOSE,
)
"""The heading, and the lists, tables, lesser headings and empty lines that follow it."""

PREFIXES: tuple[LineMark, ...] = (
    _prefix(
        "timestamp",
        rf"\[(?:(?:{_CHANNELS})\b[^\[\]\n]{{0,120}}? )?(?:{_WEEKDAYS}),? {_MOMENT}{_ZONE}\]",
    ),
    _prefix("timestamp", rf"\[(?:{_CHANNELS})\b[^\[\]\n]{{0,120}}? {_MOMENT}{_ZONE}\]"),
    _prefix("system note", r"\[System:[^\[\]\n]{0,1000}\]"),
    _prefix("message id", r"\[message_id:[^\[\]\n]{0,200}\]"),
    _prefix("sender", r"\[from:[^\[\]\n]{0,200}\]"),
    _prefix("reply tag", r"\[\[reply_to[^\[\]\n]{0,200}\]\]"),
)
"""What a line may begin with, several in a row."""

LINES: tuple[LineMark, ...] = (
    _line("heartbeat", r"\W*+(?:(?:HEARTBEAT_OK|HEARTBEAT_DISABLED|NO_REPLY)(?!\w)\W*+)++"),
    _line("system note", rf"System: \[(?:(?:{_WEEKDAYS}),? )?{_MOMENT}{_ZONE}\].*+"),
)
"""What a line may be as a whole."""


# Takes out of a query what a host of agents has put around it, and says what that was.

LONGEST = 2000
"""Characters of a query that are searched, as in Memory-Spark."""
READ_PER_KEPT = 50
"""How many times `longest` is read at all, so that time stays bounded."""
OVERLONG = "overlong start"

# At one place the first that matches decides; all begin with a plain character.
_ANY_BLOCK = re.compile("|".join(block.opens.pattern for block in BLOCKS))


@dataclass(frozen=True, slots=True)
class Removal:
    """How often one kind of thing was removed, and how long it was in all."""

    count: int
    characters: int


@dataclass(frozen=True, slots=True)
class CleanedQuery:
    """A query in one line.

    Attributes:
        text: What is searched; empty only where nothing but white space was given.
        removed: By name what was removed.
        kept_as_given: Whether nothing but wrapping was given, so that it is searched itself.
    """

    text: str
    removed: Mapping[str, Removal]
    kept_as_given: bool = False


@dataclass(slots=True)
class _Tally:
    removed: dict[str, Removal] = field(default_factory=dict)

    def add(self, name: str, characters: int) -> None:
        if characters == 0:
            return
        before = self.removed.get(name, Removal(0, 0))
        self.removed[name] = Removal(before.count + 1, before.characters + characters)


def clean_query(text: str, *, longest: int = LONGEST) -> CleanedQuery:
    """Remove wrapping, fold white space, and keep the last `longest` characters.

    What is clean already is left as it is: cleaning twice is cleaning once. Where nothing would be
    left, the text itself is searched, in one line, so that no search fails because of cleaning.

    Raises:
        InvalidInput: `longest` is less than 1.
    """
    if longest < 1:
        raise InvalidInput("longest", longest, "no character would be left", "Give at least 1")
    cleaned = _reduced(text, longest)
    if cleaned.text or not text.strip():
        return cleaned
    # In one line less is recognised, since what marks a line needs its line.
    folded = _end(_folded(text[-READ_PER_KEPT * longest :]), longest)
    again = _reduced(folded, longest)
    return CleanedQuery(again.text or folded, again.removed if again.text else {}, True)


def _reduced(text: str, longest: int) -> CleanedQuery:
    tally = _Tally()
    before, after = None, text[-READ_PER_KEPT * longest :]
    tally.add(OVERLONG, len(text) - len(after))
    # From the second round on at most `longest` characters, fewer each time.
    while after != before:
        before = after
        folded = _folded(_without_wrapping(before, tally))
        after = _end(folded, longest)
        tally.add(OVERLONG, len(folded) - len(after))
    return CleanedQuery(after, tally.removed)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _end(folded: str, longest: int) -> str:
    return folded[-longest:].lstrip()


def _without_wrapping(text: str, tally: _Tally) -> str:
    without_blocks = _without_blocks(text.replace("\r\n", "\n").replace("\r", "\n"), tally)

    def removed(queue: re.Match[str]) -> str:
        tally.add("task queue", len(queue[0]))
        return ""

    without_queues = TASK_QUEUE.sub(removed, without_blocks)
    return "\n".join(_line_without_marks(line, tally) for line in without_queues.split("\n"))


def _without_blocks(text: str, tally: _Tally) -> str:
    pieces: list[str] = []
    unclosed: set[re.Pattern[str]] = set()
    kept_from = position = 0
    while opening := _ANY_BLOCK.search(text, position):
        start, position = opening.span()
        block = next(block for block in BLOCKS if block.opens.match(text, start))
        # A mark that is not found once is not found further on either: time stays linear.
        closing = None if block.closes in unclosed else block.closes.search(text, position)
        if closing is None:
            unclosed.add(block.closes)
            continue
        position = closing.end()
        if block.name is not None:
            # A space keeps what stood before and after apart.
            pieces += [text[kept_from:start], " "]
            tally.add(block.name, position - start)
            kept_from = position
    return "".join([*pieces, text[kept_from:]])


def _line_without_marks(line: str, tally: _Tally) -> str:
    rest = line.strip()
    position = 0
    while mark := _mark_at(rest, position):
        name, end = mark
        tally.add(name, end - position)
        position = end
    rest = rest[position:]
    for kind in LINES:
        if kind.pattern.fullmatch(rest):
            tally.add(kind.name, len(rest))
            return ""
    return rest


def _mark_at(line: str, position: int) -> tuple[str, int] | None:
    for kind in PREFIXES:
        found = kind.pattern.match(line, position)
        if found:
            return kind.name, found.end()
    return None
