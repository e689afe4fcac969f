"""Stories: a world told in memories, and questions whose chains through it are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from recollect.training.agent.world import BOOKS, COMPANIES, Fact, World, make_world

# {s}: the subject, {f}: its first word, {o}: what the relation leads to.
TELLINGS: Mapping[str, tuple[str, ...]] = {
    "town": (
        "{s} lives in {o}, in a flat above a bakery.",
        "{s} has moved to {o} and likes the market there.",
        "These days {s} is at home in {o}.",
    ),
    "birthplace": ("{s} was born in {o}.", "{s}, born in {o}, left as a child."),
    "instrument": ("{s} plays the {o} on Sundays.", "{s} has taken up the {o}."),
    "company": ("{s} works at {o}.", "{s} joined {o} last autumn.", "{s} has a job at {o}."),
    "boss": (
        "{s}'s boss is {o}.",
        "{s} reports to {o}.",
        "{o} approves the holidays of {s}.",
    ),
    "husband": (
        "{s} married {o} by the lake.",
        "{s} came with her husband, {o}.",
        "{s} and {o} celebrated their tenth wedding day.",
    ),
    "wife": (
        "{s} married {o} in the spring.",
        "{s} and his wife {o} keep bees.",
        "{o} is married to {s}.",
    ),
    "father": (
        "{s}'s father is {o}.",
        "{s} is a son of {o}.",
        "{o} taught {s}, his child, to swim.",
    ),
    "mother": ("{s}'s mother, {o}, bakes.", "{o} is the mother of {s}.", "{s} was raised by {o}."),
    "teacher": ("{s} takes lessons with {o}.", "{s}'s teacher is {o}.", "{o} taught {s} to read."),
    "ceo": ("The CEO of {s} is {o}.", "{s} is led by {o}.", "{o} runs {s}."),
    "founder": ("{s} was founded by {o}.", "{o} started {s} in a garage."),
    "author": ("{s} is a novel by {o}.", "{o} wrote {s}.", "The author of {s} is {o}."),
}
_ASIDES = (
    "{a} and {b} went to the harbour together.",
    "{a} lent {b} a ladder.",
    "{a} forgot an umbrella at {b}'s place.",
    "{a} saw {b} at the concert in the park.",
    "{a} cannot stand coriander.",
    "{a} asked {b} about the wallpaper.",
)
# How what is asked at the end is worded, and which fact answers it.
ENDINGS: tuple[tuple[str, str], ...] = (
    ("Where does {} live?", "town"),
    ("Where was {} born?", "birthplace"),
    ("Which instrument does {} play?", "instrument"),
    ("Which company does {} work for?", "company"),
    ("Who is the boss of {}?", "boss"),
)
STEPS = ("boss", "husband", "wife", "father", "mother", "teacher")
_FIRST_STEPS = {"company": ("ceo", "founder"), "book": ("author",), "person": STEPS}


@dataclass(frozen=True, slots=True)
class ChainQuestion:
    """A question and the chain that answers it.

    Attributes:
        text: The question.
        names: What each step leads to, in order.
        memories: Ids of the memories of the chain: one for each step, and the last.
    """

    text: str
    names: tuple[str, ...]
    memories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """Memories, by id, and questions about them."""

    memories: Mapping[str, str]
    questions: tuple[ChainQuestion, ...]


def make_story(seed: int, *, questions: int = 20) -> Story:
    """Tell a world; the same seed gives the same story.

    A fifth of the memories that a chain needs is left out, so that some questions have no answer.
    """
    random = Random(seed)  # noqa: S311  no secret is drawn
    world = make_world(random)
    memories = {_id(fact): _told(random, fact) for fact in world.facts}
    people = sorted({fact.subject for fact in world.facts if fact.relation == "birthplace"})
    for number in range(2 * len(people)):
        first, second = random.sample(people, 2)
        memories[f"aside-{number}"] = random.choice(_ASIDES).format(a=first, b=second)
    asked = tuple(_questions(random, world, questions))
    for question in asked:
        if random.random() < 0.2:
            memories.pop(random.choice(question.memories), None)
    return Story(memories, asked)


def _questions(random: Random, world: World, count: int) -> Iterator[ChainQuestion]:
    starts = sorted({fact.subject for fact in world.facts})
    while count:
        start = random.choice(starts)
        path = _path(random, world, start, length=random.choice((1, 1, 2)))
        wording, attribute = random.choice(ENDINGS)
        last = world.find(path[-1].object, attribute) if path else None
        if last is None:
            continue
        described = _described(random, start, [fact.relation for fact in path])
        names = tuple(fact.object for fact in path)
        yield ChainQuestion(
            wording.format(described), names, tuple(_id(fact) for fact in (*path, last))
        )
        count -= 1


def _path(random: Random, world: World, start: str, *, length: int) -> list[Fact]:
    kind = "company" if start in COMPANIES else "book" if start in BOOKS else "person"
    path: list[Fact] = []
    entity = start
    while len(path) < length:
        choices = _FIRST_STEPS[kind] if not path else STEPS
        fact = world.find(entity, random.choice(choices))
        if fact is None or fact.object in (start, *(each.object for each in path)):
            return []
        path.append(fact)
        entity = fact.object
    return path


def _described(random: Random, start: str, relations: list[str]) -> str:
    """Word a path as "the father of X's wife" or "the father of the wife of X"."""
    first, *others = [relation.upper() if relation == "ceo" else relation for relation in relations]
    words = f"{start}'s {first}" if random.random() < 0.5 else f"the {first} of {start}"
    for relation in others:
        words = f"the {relation} of {words}"
    return words


def _told(random: Random, fact: Fact) -> str:
    return random.choice(TELLINGS[fact.relation]).format(s=fact.subject, o=fact.object)


def _id(fact: Fact) -> str:
    return f"{fact.subject}|{fact.relation}"
