"""Which English words are of which kind; a kind is one letter, so that patterns can name it."""

from __future__ import annotations

from collections.abc import Mapping

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
