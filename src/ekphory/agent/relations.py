"""Relations of one thing to another, as words: which there are, and how they are worded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ekphory.retrieval.query import ENOUGH, classify_query

# Words for comparing: folded, and only those that mean something.

PARTICLES = frozenset(
    "of the de da di du del della der den des van von zu zum zur la le las los el al bin ibn ben "
    "y e i ter ten".split()
)
"""Small words that stand inside names."""
_NO_MEANING = PARTICLES | frozenset("a an and in on at to for s is are was were be it".split())
_WORD = re.compile(r"[^\W_]+")


def folded(text: str) -> str:
    """Return a text in lower case and without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(mark for mark in decomposed if not unicodedata.combining(mark))


def words_in(text: str) -> list[str]:
    """Return the words of a text, folded, in order."""
    return _WORD.findall(folded(text))


def meaning_words(text: str) -> frozenset[str]:
    """Return the words that tell one name from another."""
    words = frozenset(words_in(text))
    return words - _NO_MEANING or words


# Relations of one thing to another, as words: which there are, and how memories state them.


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation, such as `director`.

    Attributes:
        word: As the question has it.
        cues: Words and phrases that stand beside the name of the one that is meant.
        through: The relations that it is made of, the nearest first; empty for a simple one.
        is_person: Whether somebody is meant, and no place.
    """

    word: str
    cues: tuple[str, ...]
    through: tuple[str, ...] = ()
    is_person: bool = False


# Word: other words and phrases for it, the surest first; … stands for a few words between.
_SAYINGS: Mapping[str, str] = {
    "father": "father, dad, son of, daughter of, child of, born to",
    "mother": "mother, mum, mom, daughter of … and, son of … and, child of … and, and his wife, "
    "born to … and, daughter of, son of, child of, born to",
    "parent": "parent, parents, father, mother, son of, daughter of, child of, born to",
    "husband": "husband, married, wife of, spouse, partner, widow of, marry, consort of",
    "wife": "wife, married, husband of, spouse, partner, widower of, marry, consort of",
    "spouse": "spouse, husband, wife, married, partner, widow of, wife of, husband of, marry, "
    "consort of",
    "child": "child, children, son, daughter, father of, mother of, sons, daughters",
    "son": "son, sons, child, children, father of, mother of",
    "daughter": "daughter, daughters, child, children, father of, mother of",
    "sibling": "sibling, siblings, brother, sister, brother of, sister of",
    "brother": "brother, brother of, sister of, sibling",
    "sister": "sister, sister of, brother of, sibling",
    "director": "directed by, director, directed, direction, filmmaker, film by, directs",
    "producer": "produced by, producer, produced",
    "writer": "written by, writer, wrote, author, by, screenplay by, written",
    "author": "written by, author, wrote, novel by, book by, by, writer",
    "screenwriter": "written by, screenplay by, screenwriter, wrote, writer",
    "performer": "by, performed by, recorded by, sung by, singer, performed, recorded, sung, "
    "released by, artist, band, song by, single by",
    "singer": "sung by, singer, by, sang, performed by, recorded by, song by",
    "artist": "by, artist, painted by, performed by, recorded by",
    "composer": "composed by, music by, composer, composed, score by, written by, music, wrote, "
    "by, musical director, scored by",
    "lyricist": "lyrics by, lyricist, written by",
    "painter": "painted by, painter, painted",
    "architect": "designed by, architect, designed, built by",
    "designer": "designed by, designer, designed",
    "editor": "edited by, editor, edited",
    "publisher": "published by, publisher, published",
    "actor": "played by, starring, actor, stars, portrayed by",
    "founder": "founded by, founder, founded, established by, co-founded by, started by",
    "inventor": "invented by, inventor, invented",
    "creator": "created by, creator, created, made by, developed by",
    "developer": "developed by, developer, developed, built by, made by",
    "maker": "made by, maker, makes, manufactured by, produced by, built by",
    "manufacturer": "manufactured by, made by, makes, produced by, built by, manufacturer",
    "owner": "owned by, owner, owns, belongs to, bought by, acquired by",
    "ceo": "ceo, chief executive, led by, run by, runs, heads, leads",
    "cto": "cto, chief technology officer, technical lead",
    "cfo": "cfo, chief financial officer, head of finance",
    "president": "president, led by, chaired by",
    "chair": "chair, chairman, chairwoman, chairs, chaired by",
    "leader": "leader, led by, leads, heads, headed by, head of",
    "head": "head, heads, headed by, led by, leads, runs",
    "boss": "boss, manager, supervisor, reports to, works for, managed by",
    "manager": "manager, managed by, manages, boss, reports to, led by",
    "supervisor": "supervisor, supervised by, supervises, advisor, reports to",
    "mentor": "mentor, mentored by, mentors, coach",
    "coach": "coach, coached by, coaches, trainer, trained by",
    "teacher": "teacher, taught by, teaches, tutor, lessons with, studied under",
    "student": "student, pupil, taught, teaches",
    "employer": "works for, works at, employed by, employer, joined, job at, company, working for, "
    "working at",
    "company": "works for, works at, company, employed by, joined, job at, firm, working at",
    "partner": "partner, boyfriend, girlfriend, husband, wife, married, dating",
    "girlfriend": "girlfriend, dating, partner, going out with",
    "boyfriend": "boyfriend, dating, partner, going out with",
    "friend": "friend, friends, friend of, buddy",
    "colleague": "colleague, coworker, works with, team with",
    "neighbour": "neighbour, neighbor, next door, lives next",
    "landlord": "landlord, landlady, rents from, rented from, owned by",
    "doctor": "doctor, treated by, dentist, physician, therapist",
    "translator": "translated by, translator, translated",
    "predecessor": "predecessor, preceded by, succeeded, took over from, replaced",
    "successor": "successor, succeeded by, replaced by, followed by, handed over to",
    "country": "country, in, of, from",
    "city": "city, in, at, located in, moved to, lives in",
    "town": "town, in, at, located in, moved to, lives in, village",
    "village": "village, in, at, located in, lives in",
    "capital": "capital, capital is",
    "hometown": "hometown, grew up in, born in, comes from, home town",
    "birthplace": "birthplace, born in, born at, native of",
    "headquarters": "headquarters, headquartered in, based in, head office",
    "school": "school, attended, studied at, went to, educated at, enrolled at",
    "university": "university, studied at, attended, graduated from, educated at, enrolled at",
    "team": "team, plays for, played for, member of, works in",
    "band": "band, member of, plays in, sings in, group",
    "club": "club, plays for, member of, joined",
    "label": "label, released by, signed to, records",
    "pet": "pet, dog, cat, named, called",
    "dog": "dog, puppy, named, called",
    "cat": "cat, kitten, named, called",
}

_SAME: Mapping[str, str] = {
    "dad": "father",
    "mum": "mother",
    "mom": "mother",
    "parents": "parent",
    "children": "child",
    "kid": "child",
    "kids": "child",
    "siblings": "sibling",
    "actress": "actor",
    "star": "actor",
    "filmmaker": "director",
    "songwriter": "composer",
    "musician": "performer",
    "cofounder": "founder",
    "chairman": "chair",
    "chairwoman": "chair",
    "coworker": "colleague",
    "neighbor": "neighbour",
    "landlady": "landlord",
    "tutor": "teacher",
    "professor": "teacher",
    "advisor": "supervisor",
    "flatmate": "friend",
    "roommate": "friend",
    "college": "university",
    "firm": "company",
    "startup": "company",
    "builder": "maker",
    "captain": "leader",
    "lead": "head",
    "executive": "ceo",
    "fiancé": "partner",
    "fiancée": "partner",
    "fiance": "partner",
    "fiancee": "partner",
}

# What one is to somebody through somebody else.
_THROUGH: Mapping[str, tuple[str, ...]] = {
    "grandfather": ("parent", "father"),
    "grandmother": ("parent", "mother"),
    "grandparent": ("parent", "parent"),
    "grandson": ("child", "son"),
    "granddaughter": ("child", "daughter"),
    "grandchild": ("child", "child"),
    "paternal grandfather": ("father", "father"),
    "paternal grandmother": ("father", "mother"),
    "maternal grandfather": ("mother", "father"),
    "maternal grandmother": ("mother", "mother"),
    "uncle": ("parent", "brother"),
    "aunt": ("parent", "sister"),
    "cousin": ("parent", "sibling", "child"),
    "nephew": ("sibling", "son"),
    "niece": ("sibling", "daughter"),
    "father-in-law": ("spouse", "father"),
    "mother-in-law": ("spouse", "mother"),
    "brother-in-law": ("spouse", "brother"),
    "sister-in-law": ("spouse", "sister"),
    "sibling-in-law": ("spouse", "sibling"),
    "son-in-law": ("child", "husband"),
    "daughter-in-law": ("child", "wife"),
    "stepfather": ("mother", "husband"),
    "stepmother": ("father", "wife"),
}

_PLACES = frozenset(
    "country city town village capital hometown birthplace headquarters school university team "
    "company employer firm startup college club".split()
)
_KNOWN = frozenset(_SAYINGS) | frozenset(_SAME) | frozenset(_THROUGH)


# Words that end as those for people who do something, and are none.
_NO_DOERS = frozenset(
    "number paper letter order power summer winter weather water matter other character chapter "
    "corner center centre layer member river master monster computer colour color flavor flavour "
    "favor favour humor humour error mirror floor door motor factor sector vector harbor dinner "
    "answer offer career beer finger shoulder border folder shower tower flower printer laser "
    "september october november december quarter poster charter cover over under after ever never "
    "rather whether together better later earlier former latter upper lower major minor senior "
    "junior prior exterior interior outdoor indoor semester behavior behaviour ginger temper "
    "ladder butter trailer counter cancer fever theater theatre register chamber timber".split()
)


def is_relation(word: str) -> bool:
    """Whether this word, in the singular or plural, says what one thing is to another.

    Those that are listed do, and words that end as those for people who do something.
    """
    said = folded(word)
    return _singular(said) is not None or _does_something(said)


def _does_something(word: str) -> bool:
    if len(word) < 6 or not word.endswith(("er", "or", "ist")):
        return False
    return word not in _NO_DOERS and _KIND_OF.get(word, "r") in "rp"


def _doing(word: str) -> tuple[str, ...]:
    """Return what memories may say of a doer: "illustrated by" of an illustrator."""
    if not (_does_something(word) and word.endswith(("er", "or"))):
        return ()
    stem = word[:-2]
    return (f"{stem}ed by", f"{stem}ed", f"{stem}es", f"{stem}s")


def relation(word: str) -> Relation:
    """Return the relation of this word; of a word that is not listed the word itself is the cue."""
    said = folded(word)
    name = _singular(said) or said
    through = _THROUGH.get(name, ())
    sayings = _SAYINGS.get(_SAME.get(name, name), "")
    listed = tuple(cue.strip() for cue in sayings.split(",") if cue.strip())
    cues = (name, *(listed or _doing(name)))
    is_person = name not in _PLACES and (name in _KNOWN or _does_something(name))
    return Relation(name, tuple(dict.fromkeys(cues)), through, is_person)


def _singular(word: str) -> str | None:
    """Return the listed word that this one is, or is the plural of."""
    endings = (("", ""), ("s", ""), ("ies", "y"), ("ren", ""), ("ves", "fe"), ("es", ""))
    for ending, singular in endings:
        if word.endswith(ending):
            stem = word[: len(word) - len(ending)] + singular
            if stem in _KNOWN:
                return stem
    return None


# How a question describes one thing through another, for questions of which no path is known: the
# kinds of its words, one letter a word, and patterns over those letters.
#
# It was made for sets of questions about people and works; what finds the next memory of a chain by
# learning will replace it.

_OTHER = "x"
_IS_POSSESSIVE = "'"
_PARTICIPLE = "h"
_NUMBER = "#"
_DATE = "n"
_RELATIVE = "k"

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
    _DATE: "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays "
    "thursdays fridays saturdays sundays january february april june july august september "
    "october november december christmas easter",
    _NUMBER: "one two three four five six seven eight nine ten eleven twelve few couple several",
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
    _PARTICIPLE: "said told went saw met came gave made took got found bought sold sent wrote "
    "spoke fed done built kept paid written run set",
}

_KIND_OF: Mapping[str, str] = {
    word: letter for letter, words in reversed(tuple(_WORDS.items())) for word in words.split()
}
_OPENS_A_CLAUSE = frozenset({"who", "whom", "which", "whose", "where"})
_NAMED_MONTHS = frozenset({"May", "March"})
"""Months only where they are written as names."""


# A mark between words counts as a word, so that no pattern reaches across it unawares.
_QUESTION_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[?!;,](?=\s+\w)")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NOUNS = frozenset("xprFh")
_BEFORE_IS = frozenset("wWQHIiT")


@dataclass(frozen=True, slots=True)
class _Words:
    """A query's words.

    Attributes:
        given: As written, possessives split off.
        lower: In lower case.
        kinds: One letter a word, as `_WORDS` gives them.
    """

    given: tuple[str, ...]
    lower: tuple[str, ...]
    kinds: str


def _words_of(text: str) -> _Words:
    """Split a text into words."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text).replace("’", "'")
    given: list[str] = []
    for word in _QUESTION_WORD.findall(composed):
        given.extend(_parts(word))
    lower = tuple(word.lower() for word in given)
    return _Words(tuple(given), lower, _kinds(given, lower))


def _parts(word: str) -> tuple[str, ...]:
    stem, apostrophe, ending = word.rpartition("'")
    if not apostrophe or ending not in ("s", "S"):
        return (word,)
    is_verb = _KIND_OF.get(stem.lower(), _OTHER) in _BEFORE_IS or stem.lower() in ("here", "there")
    return (stem, "is" if is_verb else "'s")


def _kinds(given: Sequence[str], lower: Sequence[str]) -> str:
    kinds: list[str] = []
    for place, word in enumerate(lower):
        kind = _KIND_OF.get(word, _OTHER)
        if word == "'s":
            kind = _IS_POSSESSIVE
        elif word.isdigit():
            kind = _DATE if _YEAR.fullmatch(word) else _NUMBER
        elif place and given[place] in _NAMED_MONTHS:
            kind = _DATE
        elif kind == _OTHER and word.endswith("ed") and len(word) > 4:
            kind = _PARTICIPLE
        elif word in _OPENS_A_CLAUSE and kinds and kinds[-1] in _NOUNS:
            kind = _RELATIVE
        kinds.append(kind)
    return "".join(kinds)


# A noun of any kind, and what may stand before one.
_NOUN = "[xprhF]"
_THE = "[dm]"
_AUXILIARY = "[DUVu]"

_CHAIN_SHAPES: tuple[tuple[str, float], ...] = (
    # The husband of my teacher; the grandfather of Livia's cousin.
    (rf"[rp]o{_THE}?{_NOUN}{{0,2}}'?{_NOUN}?r", 1.6),
    # My sister's boss; Otto's dog's name.
    (rf"r'{_NOUN}?r|'{_NOUN}{{1,2}}'", 1.6),
    # The manager of the person who wrote it; the population of the town my parents left.
    (rf"(?<!F)o{_THE}{_NOUN}{{1,2}}(?:[kT]|mr)", 1.1),
    # Where does the man who fixed it live? Which wine does the friend I met like?
    (rf"{_AUXILIARY}{_THE}(?:{_NOUN}{{1,2}}[kI]|{_NOUN}T)", 1.6),
    # Where does the daughter of our landlord live?
    (rf"{_AUXILIARY}{_THE}r(?:o|e{_THE}?{_NOUN})", 1.2),
    # Who fixed the bug that broke it? Which team owns the service that the job needs?
    (rf"^w{_NOUN}{{1,3}}{_THE}{_NOUN}{{1,2}}[kT]", 1.4),
    # The university where Anja's supervisor works; the country Ravi's wife comes from.
    (rf"pk?{_THE}?{_NOUN}?'r", 1.3),
    # The birthplace of the composer of the piece.
    (rf"o{_THE}{_NOUN}?[rp]o", 1.3),
    # Who recommended the plumber, and where do they live?
    (r".{3}a[wWQH][DUVubB].*[kTIi]", 1.0),
)


def describes_one_through_another(question: str) -> bool:
    """Whether something must be found first, as in "the manager of the person who wrote it"."""
    kinds = _words_of(question).kinds
    weight = sum(weight for pattern, weight in _CHAIN_SHAPES if re.search(pattern, kinds))
    return weight >= ENOUGH and classify_query(question).intent in ("lookup", "chain")
