"""Relations of one thing to another, as words: which there are, and how they are worded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from ekphory.retrieval.query import KIND_OF

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
    return word not in _NO_DOERS and KIND_OF.get(word, "r") in "rp"


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
