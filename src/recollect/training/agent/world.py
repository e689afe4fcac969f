"""A small made-up world: people, companies and books, and what they are to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from recollect.training.invented_names import FIRST_NAMES

SURNAMES = tuple(
    """Abernathy Almgren Barros Beltran Birkeland Bonnet Brandvold Calloway Castellan Dahlke
    Delacroix Dunmore Eberhart Ekwueme Engstrom Farrow Ferrante Galanis Garrick Halloran
    Hargrave Holmqvist Ikeda Jansky Kalloway Karlsen Kessler Kowalczyk Lindqvist Lockhart
    Maddern Marchetti Moreau Nakagawa Novotny Okonjo Ostrander Pellerin Petrakis Quarles
    Rademaker Rosales Sandoval Schuyler Tavares Thornbury Ullman Vandermeer Verhoeven Wainwright
    Westergaard Yamada Zielinski""".split()
)
TOWNS = tuple(
    """Aldermoor Brenholt Calverstrand Dunvale Eskerby Fenmarch Glimsund Harrowick Inverlaugh
    Jostedal Kettlemere Lowbridge Marrowfield Norrhavn Oakhampton Pellworth Quernby Ravensund
    Saltmarsh Thistledown Ulvsborg Vintermere Westerhaven Yarrowgate""".split()
)
COMPANIES = tuple(
    """Ardent Bluefin Cinderpath Driftwood Emberline Foxglove Gantry Halcyon Ironbark Juniper
    Keystone Lanternworks Meridian Northgate Opaline Pinecrest""".split()
)
BOOKS = (
    "The Salt Ladder",
    "A Winter of Glass",
    "Nine Quiet Rivers",
    "The Cartographer's Debt",
    "Under Copper Skies",
    "The Last Orchard",
    "Letters to Nobody",
    "A House of Small Bells",
    "The Weight of Feathers",
    "Tomorrow's Harbour",
)
INSTRUMENTS = ("cello", "accordion", "oboe", "trumpet", "harp", "clarinet", "viola", "banjo")


@dataclass(frozen=True, slots=True)
class Fact:
    """Somebody or something, a relation, and what it leads to."""

    subject: str
    relation: str
    object: str


@dataclass(frozen=True, slots=True)
class World:
    """All facts, by subject and relation; each pair leads to one thing."""

    facts: tuple[Fact, ...]

    def find(self, subject: str, relation: str) -> Fact | None:
        """Give the fact; None where the world has none."""
        found = (
            each for each in self.facts if (each.subject, each.relation) == (subject, relation)
        )
        return next(found, None)


def make_world(random: Random, *, people: int = 24) -> World:
    """Make a world of so many people; the same `random` gives the same world."""
    firsts = random.sample(FIRST_NAMES, people)
    names = [f"{first} {random.choice(SURNAMES)}" for first in firsts]
    return World(tuple(_facts(random, names)))


def _facts(random: Random, names: list[str]) -> Iterator[Fact]:
    companies = random.sample(COMPANIES, 6)
    books = random.sample(BOOKS, 5)
    for place, name in enumerate(names):
        others = [other for other in names if other != name]
        yield Fact(name, "town", random.choice(TOWNS))
        yield Fact(name, "birthplace", random.choice(TOWNS))
        yield Fact(name, "instrument", random.choice(INSTRUMENTS))
        yield Fact(name, "company", random.choice(companies))
        yield Fact(name, "boss", random.choice(others))
        if place % 2:
            yield Fact(name, "husband", names[place - 1])
            yield Fact(names[place - 1], "wife", name)
        yield Fact(name, "father", random.choice(others))
        yield Fact(name, "mother", random.choice(others))
        yield Fact(name, "teacher", random.choice(others))
    for company in companies:
        yield Fact(company, "ceo", random.choice(names))
        yield Fact(company, "founder", random.choice(names))
        yield Fact(company, "town", random.choice(TOWNS))
    for book in books:
        yield Fact(book, "author", random.choice(names))
