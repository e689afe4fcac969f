"""The sources that training draws from, each as a stream of question groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, count, groupby, islice, repeat
from pathlib import Path
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import DatasetError, InvalidInput
from ekphory.models.late_bound import AGE_BUCKETS, Codes
from ekphory.types import MEMORY_TYPES
from ekphory_lab.evaluation.systems import bm25_scorer
from ekphory_lab.training.embedder_config import EmbedderConfig
from ekphory_lab.training.question_groups import (
    WORDS,
    BaseModel,
    FloatMatrix,
    GroupBuilder,
    QuestionGroup,
    placed_turns,
    reported_question,
    reworded,
)
from ekphory_lab.training.statements import statement_questions
from ekphory_lab.training.texts import (
    CONVERSATIONS,
    DOCUMENTS,
    EXCHANGES,
    Row,
    Turn,
    clean_text,
    is_long,
    read_conversations,
    read_documents,
    read_rows,
    sha256_of,
    sha256_of_texts,
    shortened,
    turn_passages,
    two_names,
    with_long_messages,
)

Item = TypeVar("Item")
Groups = Callable[[Sequence[Row], Random], Iterator[QuestionGroup]]
"""Makes one epoch of groups, newly shuffled, named and worded."""


def _shuffled_chunks(items: Sequence[Item], size: int, random: Random) -> Iterator[list[Item]]:
    shuffled = random.sample(items, len(items))
    for start in range(0, len(shuffled), size):
        yield shuffled[start : start + size]


def _epochs_of(
    make: Callable[[Sequence[Row], Random], QuestionGroup | None], *, size: int = 1
) -> Groups:
    """Return what makes a group of so many rows at a time; one without a question is left out."""

    def make_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
        for chosen in _shuffled_chunks(rows, size, random):
            group = make(chosen, random)
            if group is not None:
                yield group

    return make_groups


# Question groups of the conversations written for training: two people, real dates, real talk.

_NOBODY = "memory"
# A search gets an assistant's chats with these names.
_ROLES = {"User": "user", "Assistant": "assistant"}


def _conversation_group(
    rows: Sequence[Row], random: Random, *, source: str
) -> QuestionGroup | None:
    (row,) = rows
    builder = GroupBuilder(source)
    places: list[int] = []
    for _, turns in groupby(row["turns"], key=lambda turn: int(turn["session"])):
        said = list(turns)
        texts = [_said(turn) for turn in said]
        places += builder.add_session(texts, at=datetime.fromisoformat(said[0]["at"]))
    for asked in random.sample(row["questions"], len(row["questions"])):
        builder.add_question(asked["query"], [places[turn] for turn in asked["turns"]])
    return builder.build()


def _said(turn: Row) -> str:
    """Return a turn as a search reads it; what a system noted has nobody who said it."""
    speaker = _ROLES.get(turn["speaker"], turn["speaker"])
    return turn["text"] if speaker == _NOBODY else f"{speaker}: {turn['text']}"


conversation_groups = _epochs_of(partial(_conversation_group, source="conversations"))
exchange_groups = _epochs_of(partial(_conversation_group, source="exchanges"))


# Question groups of the documents written for training: two subjects, close neighbours in each.
#
# What is searched is claims, questions and keywords, as people search papers and manuals; they keep
# what the model knows of documents while conversations are learned.

_SUBJECTS = 2
_TITLED = 0.7


def _document_group(rows: Sequence[Row], random: Random) -> QuestionGroup | None:
    builder = GroupBuilder("documents")
    for document in chain.from_iterable(row["documents"] for row in rows):
        titled = random.random() < _TITLED
        text = f"{document['title']}. {document['text']}" if titled else document["text"]
        place = builder.add_passage(text)
        for search in document["searches"]:
            builder.add_question(search, [place])
    return builder.build()


document_groups = _epochs_of(_document_group, size=_SUBJECTS)


# Question groups of CRD3: what a summary says, asked of the turns that it sums up.
#
# Neighbouring passages of one episode compete. A summary of many turns is left out: it would not
# say which of them answers.

SUMMARIES_PER_GROUP = 10
MOST_TURNS = 6
_MOST_WORDS = 60
_LEAST_WORDS = 4
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LEAST_OVERLAP = 0.15


def crd3_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Return one epoch of groups."""
    fitting = [row for row in rows if len(row["turns"]) <= MOST_TURNS]
    starts = list(range(0, len(fitting) - SUMMARIES_PER_GROUP, SUMMARIES_PER_GROUP))
    offset = random.randrange(SUMMARIES_PER_GROUP)
    for start in random.sample(starts, len(starts)):
        chosen = fitting[start + offset : start + offset + SUMMARIES_PER_GROUP]
        group = _crd3_group(chosen)
        if group is not None:
            yield group


def _crd3_group(rows: Sequence[Row]) -> QuestionGroup | None:
    builder = GroupBuilder("crd3")
    for number, row in enumerate(rows):
        texts = [f"{turn['speaker'].title()}: {turn['text']}" for turn in row["turns"]]
        shown = [shortened(text, _MOST_WORDS) for text in texts]
        turns = zip(texts, shown, placed_turns(shown, session=number), strict=True)
        places = {
            text: builder.add_passage(passage, placement)
            for text, passage, placement in turns
            if len(text.split()) > _LEAST_WORDS
        }
        for sentence in _SENTENCE_END.split(row["summary"]):
            positives = _that_share_words(sentence, places)
            if positives and len(sentence.split()) > _LEAST_WORDS:
                builder.add_question(sentence, positives)
    return builder.build()


def _that_share_words(sentence: str, places: dict[str, int]) -> list[int]:
    wanted = _words(sentence)
    return [
        place
        for text, place in places.items()
        if len(wanted & _words(shortened(text, _MOST_WORDS))) >= _LEAST_OVERLAP * len(wanted)
    ]


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 3}


# Question groups of Synthetic-Persona-Chat: two people tell each other about themselves.
#
# Several chats become one long conversation of two invented people. Three kinds of questions: what
# a turn says of its speaker, what a turn answers that the other asked, and what a persona's fact
# says that a turn shows in other words.

CHATS_PER_GROUP = 4
QUESTIONS_PER_GROUP = 36
_LEAST_SHARED = 0.5
_PLACEHOLDER = re.compile(r"\[[^\]]*\]|\buser [12]\b", re.I)
_STOP_WORDS = frozenset(
    """i my a an the to of in on at for with is am are was be have has had do does and or but it
    that this very really as so too also me you your""".split()
)


def _persona_group(chats: Sequence[Row], random: Random) -> QuestionGroup | None:
    names = two_names(random)
    builder = GroupBuilder("synthetic_persona_chat")
    for chat in chats:
        _add_chat(builder, chat, names, random)
    questions = builder.questions
    if len(questions) > QUESTIONS_PER_GROUP:
        questions = random.sample(questions, QUESTIONS_PER_GROUP)
    return builder.build(questions)


persona_groups = _epochs_of(_persona_group, size=CHATS_PER_GROUP)


def _add_chat(builder: GroupBuilder, chat: Row, names: tuple[str, str], random: Random) -> None:
    by_speaker = {"User 1": names[0], "User 2": names[1]}
    # A few turns have a heading of a list for their speaker.
    said = [turn for turn in chat["turns"] if turn["speaker"] in by_speaker]
    spoken = [(by_speaker[turn["speaker"]], turn["text"]) for turn in said]
    turns = [Turn(name, _PLACEHOLDER.sub(name, text)) for name, text in spoken]
    if not turns:
        return
    others = {names[0]: names[1], names[1]: names[0]}
    passages, places = turn_passages(turns, others, random)
    rows = builder.add_session(passages)
    for text, place in _questions(chat, turns, names, random):
        asked = reworded(text, random)
        builder.add_question(asked, [rows[places[place]]])


def _questions(
    chat: Row, turns: Sequence[Turn], names: tuple[str, str], random: Random
) -> Iterator[tuple[str, int]]:
    for place, turn in enumerate(turns):
        about_turn = statement_questions(turn.text, turn.speaker, random)
        for question in random.sample(about_turn, min(2, len(about_turn))):
            yield question, place
        if place and turns[place - 1].speaker != turn.speaker and len(turn.text.split()) > 2:
            answered = reported_question(turns[place - 1].text, turn.speaker)
            if answered is not None:
                yield answered, place
    for name, facts in zip(names, chat["personas"], strict=True):
        yield from _fact_questions(facts, name, turns, random)


def _fact_questions(
    facts: Sequence[str], name: str, turns: Sequence[Turn], random: Random
) -> Iterator[tuple[str, int]]:
    for fact in facts:
        place = _turn_that_shows(fact, name, turns)
        questions = statement_questions(fact, name, random)
        if place is not None:
            for question in random.sample(questions, min(2, len(questions))):
                yield question, place


def _turn_that_shows(fact: str, name: str, turns: Sequence[Turn]) -> int | None:
    wanted = _content(fact)
    shared = [
        len(wanted & _content(turn.text)) / max(1, len(wanted)) if turn.speaker == name else 0.0
        for turn in turns
    ]
    best = max(range(len(turns)), key=shared.__getitem__)
    return best if shared[best] >= _LEAST_SHARED else None


def _content(text: str) -> frozenset[str]:
    words = re.findall(r"[a-z]+", text.lower())
    return frozenset(word.rstrip("s") for word in words if word not in _STOP_WORDS)


# Question groups of QMSum: questions about a meeting and the spans of turns that answer them.

MOST_SPAN = 60
_PASSAGES = 80
_QMSUM_LEAST_WORDS = 6
_QMSUM_MOST_WORDS = 60


def _qmsum_group(rows: Sequence[Row], random: Random) -> QuestionGroup | None:
    (row,) = rows
    spans = {query["query"]: _span(query, len(row["turns"])) for query in row["queries"]}
    spans = {text: span for text, span in spans.items() if 0 < len(span) <= MOST_SPAN}
    usable = {
        place: text
        for place, turn in enumerate(row["turns"])
        if len((text := clean_text(turn["text"])).split()) >= _QMSUM_LEAST_WORDS
    }
    wanted = {place for span in spans.values() for place in span if place in usable}
    others = [place for place in usable if place not in wanted]
    chosen = set(random.sample(sorted(wanted), min(_PASSAGES, len(wanted))))
    chosen.update(random.sample(others, min(max(0, _PASSAGES - len(chosen)), len(others))))
    builder = GroupBuilder("qmsum")
    texts = {
        place: f"{row['turns'][place]['speaker']}: {shortened(text, _QMSUM_MOST_WORDS)}"
        for place, text in usable.items()
    }
    placements = dict(zip(texts, placed_turns(list(texts.values()), session=0), strict=True))
    added = {
        place: builder.add_passage(texts[place], placements[place]) for place in sorted(chosen)
    }
    for text, span in spans.items():
        positives = [added[place] for place in span if place in added]
        if positives:
            builder.add_question(text, positives)
    return builder.build()


qmsum_groups = _epochs_of(_qmsum_group)


def _span(query: Row, turns: int) -> list[int]:
    return [
        place
        for first, last in query["spans"]
        for place in range(int(first), min(int(last) + 1, turns))
    ]


# Question groups of reading comprehension: SQuAD, Natural Questions, PolicyQA and TimeQA.
#
# They keep what the base weights know of written text, while conversations are learned.

_SQUAD_PASSAGES = 60
_SQUAD_QUESTIONS = 24
_NQ_QUESTIONS = 10
_NQ_NEGATIVES = 2
_SURE_SHARE = 0.9
_POLICY_PASSAGES = 24
_POLICY_QUESTIONS = 16
_TIME_PASSAGES = 20
_READING_MOST_WORDS = 110


def squad_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """SQuAD's questions with the sentences around the one that answers."""
    pairs = [(clean_text(row["query"]), clean_text(row["sentence"])) for row in rows]
    yield from _windows(pairs, "squad", _SQUAD_PASSAGES, _SQUAD_QUESTIONS, random)


def policyqa_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Questions about privacy policies, with neighbouring segments of the same policies."""
    pairs = [(row["query"], shortened(row["passage"], _READING_MOST_WORDS)) for row in rows]
    yield from _windows(pairs, "policyqa", _POLICY_PASSAGES, _POLICY_QUESTIONS, random)


def nq_groups(rows: Sequence[Row], random: Random) -> Iterator[QuestionGroup]:
    """Natural Questions with passages of Wikipedia that share the question's words."""
    passages = [shortened(f"{row['title']}. {row['passage']}", _READING_MOST_WORDS) for row in rows]
    score = bm25_scorer(passages)
    for chosen in _shuffled_chunks(range(len(rows)), _NQ_QUESTIONS, random):
        builder = GroupBuilder("nq_gold")
        for place in chosen:
            query = rows[place]["query"]
            answer = builder.add_passage(passages[place])
            for row in hard_negatives(np.nan_to_num(score(query)), place, random):
                builder.add_passage(passages[row])
            builder.add_question(query, [answer])
        group = builder.build()
        if group is not None:
            yield group


def hard_negatives(scores: NDArray[np.float64], answer: int, random: Random) -> list[int]:
    """Draw out of the passages that score best and answer nothing.

    A passage that scores almost as high as the answer often is one as well, so those above 90 % of
    the answer's score are left out.
    Source: Moreira et al., "NV-Retriever: Improving text embedding models with effective
    hard-negative mining", 2024 (positive-aware mining, TopK-PercPos).
    """
    fitting = (scores > 0) & (scores <= _SURE_SHARE * scores[answer])
    order = np.argsort(-scores, kind="stable")
    best = [int(row) for row in order if fitting[row]][: 3 * _NQ_NEGATIVES]
    return random.sample(best, min(_NQ_NEGATIVES, len(best)))


def _timeqa_group(rows: Sequence[Row], random: Random) -> QuestionGroup | None:
    """Questions about a time, with the other paragraphs of the same page."""
    (row,) = rows
    answering = {place for asked in row["questions"] for place in asked["paragraphs"]}
    others = [
        place
        for place, text in enumerate(row["paragraphs"])
        if place not in answering and len(text.split()) > 8
    ]
    room = max(0, _TIME_PASSAGES - len(answering))
    chosen = sorted(answering | set(random.sample(others, min(room, len(others)))))
    builder = GroupBuilder("timeqa")
    places = {
        place: builder.add_passage(
            shortened(clean_text(row["paragraphs"][place]), _READING_MOST_WORDS)
        )
        for place in chosen
    }
    for asked in row["questions"]:
        builder.add_question(asked["query"], [places[place] for place in asked["paragraphs"]])
    return builder.build()


timeqa_groups = _epochs_of(_timeqa_group)


def _windows(
    pairs: Sequence[tuple[str, str]], source: str, passages: int, questions: int, random: Random
) -> Iterator[QuestionGroup]:
    builders = list(_cut(pairs, source, passages))
    for builder in random.sample(builders, len(builders)):
        texts = builder.questions
        group = builder.build(random.sample(texts, min(questions, len(texts))))
        if group is not None:
            yield group


def _cut(pairs: Iterable[tuple[str, str]], source: str, passages: int) -> Iterator[GroupBuilder]:
    builder = GroupBuilder(source)
    for query, passage in pairs:
        builder.add_question(query, [builder.add_passage(passage)])
        if builder.size >= passages:
            yield builder
            builder = GroupBuilder(source)
    if builder.size > 1:
        yield builder


# Questions about the slots of task dialogues: who asked for what, who offered what.

_SLOT_QUESTIONS = WORDS["slot_questions"]
_WHEN_WORDS = ("date", "time")
_WHERE_WORDS = ("city", "location", "destination", "origin", "area", "station", "airport", "where")
_COUNT_PREFIX = "number of "


def _wordings(kind: str, words: str) -> list[str]:
    if kind == "asked":
        if words.startswith(_COUNT_PREFIX):
            kind = "count"
        elif any(word in words for word in _WHEN_WORDS):
            kind = "when"
        elif any(word in words for word in _WHERE_WORDS):
            kind = "where"
    wordings: list[str] = _SLOT_QUESTIONS[kind]
    return wordings


# Question groups of the Schema-Guided Dialogues: who asked for what, when and where.
#
# A few dialogues about different services become one conversation of the same two. One in five is a
# chat of `user` and `assistant`, with questions in the first person, as a user asks their own
# agent.

DIALOGUES_PER_GROUP = 4
QUESTIONS_PER_DIALOGUE = 7
_OWN_SHARE = 0.2
_DETAIL_SHARE = 0.5
_KINDS = {("user", "INFORM"): "asked", ("system", "OFFER"): "offered", ("system", "INFORM"): "told"}


def _sgd_group(dialogues: Sequence[Row], random: Random) -> QuestionGroup | None:
    own = random.random() < _OWN_SHARE
    user, assistant = ("user", "assistant") if own else two_names(random)
    builder = GroupBuilder("sgd")
    for dialogue in dialogues:
        turns = [
            Turn(user if turn["speaker"] == "user" else assistant, turn["text"])
            for turn in dialogue["turns"]
        ]
        passages, places = turn_passages(turns, {user: assistant, assistant: user}, random)
        rows = builder.add_session(passages)
        for question, turn in _sgd_questions(dialogue, user, assistant, random):
            text = _in_first_person(question) if own else question
            builder.add_question(reworded(text, random), [rows[places[turn]]])
    return builder.build()


sgd_groups = _epochs_of(_sgd_group, size=DIALOGUES_PER_GROUP)


def _sgd_questions(
    dialogue: Row, user: str, assistant: str, random: Random
) -> list[tuple[str, int]]:
    noun = WORDS["service_nouns"].get(dialogue["services"][0].split("_")[0], "booking")
    slots = list(_slots(dialogue))
    chosen = random.sample(slots, min(QUESTIONS_PER_DIALOGUE - 2, len(slots)))
    asked = [(_slot_text(slot, slots, noun, random), slot.turn) for slot in chosen]
    named = [(text.format(user=user, assistant=assistant), turn) for text, turn in asked]
    answers = list(_answered(dialogue, user))
    return named + random.sample(answers, min(2, len(answers)))


@dataclass(frozen=True, slots=True)
class _Slot:
    """A slot and its value.

    Attributes:
        turn: The place of the turn that names it.
        kind: `asked` for what the user informs of, `offered` or `told` for the assistant.
        name: With underscores.
        value: What it is.
    """

    turn: int
    kind: str
    name: str
    value: str


def _slots(dialogue: Row) -> Iterator[_Slot]:
    for place, turn in enumerate(dialogue["turns"]):
        for act, slot, values in turn["acts"]:
            kind = _KINDS.get((turn["speaker"], act))
            value = values[0] if values else ""
            if kind and slot and value.lower() not in ("", "true", "false", "dontcare"):
                yield _Slot(place, kind, slot, value.replace("{", "").replace("}", ""))


def _slot_text(slot: _Slot, slots: Sequence[_Slot], noun: str, random: Random) -> str:
    """Return a question about one slot, with the places `{user}` and `{assistant}` for names.

    It may name a value that the same turn gives of another slot.
    """
    words = slot.name.replace("_", " ")
    counted = words.removeprefix(_COUNT_PREFIX)
    wording = random.choice(_wordings(slot.kind, words))
    question = wording.replace("{slot}", words).replace("{noun}", noun)
    question = question.replace("{counted}", counted)
    others = [
        other.value
        for other in slots
        if other.turn == slot.turn and other.name != slot.name and other.value != slot.value
    ]
    if others and random.random() < _DETAIL_SHARE:
        value = random.choice(others)
        detail = str(random.choice(_SLOT_QUESTIONS["about"])).format(value).rstrip(",")
        return question.removesuffix("?") + detail + "?"
    return question


def _answered(dialogue: Row, user: str) -> Iterator[tuple[str, int]]:
    turns = dialogue["turns"]
    for place in range(1, len(turns)):
        informs = any(act[0] == "INFORM" for act in turns[place]["acts"])
        if turns[place]["speaker"] == "user" and informs:
            question = reported_question(turns[place - 1]["text"], user)
            if question is not None:
                yield question, place


def _in_first_person(question: str) -> str:
    for pattern, replacement in WORDS["first_person"]:
        question = re.sub(pattern, replacement, question)
    return question


# The sources that training draws from: where their rows lie, and what makes groups of them.


@dataclass(frozen=True, slots=True)
class TrainingSource:
    """Rows, and what makes groups of them.

    Attributes:
        name: Its file in the folder of training data; what a manifest calls it.
        groups: Makes one epoch of groups.
        read: Reads the rows.
        packaged: The folder of the package where it lies; None for a file of the training data.
    """

    name: str
    groups: Groups
    read: Callable[[Path], list[Row]] = read_rows
    packaged: Path | None = None

    def rows(self, folder: Path) -> list[Row]:
        """Read it.

        Raises:
            DatasetError: It is missing or malformed.
        """
        return self.read(self.packaged or folder / self.name)

    def sha256(self, folder: Path) -> str:
        """Return its hash, hexadecimal."""
        return sha256_of_texts(self.packaged) if self.packaged else sha256_of(folder / self.name)


SOURCES: Mapping[str, TrainingSource] = {
    "conversations": TrainingSource(
        "conversations", conversation_groups, read_conversations, CONVERSATIONS
    ),
    "exchanges": TrainingSource("exchanges", exchange_groups, read_conversations, EXCHANGES),
    "documents": TrainingSource("documents", document_groups, read_documents, DOCUMENTS),
    "synthetic_persona_chat": TrainingSource("synthetic_persona_chat.jsonl.gz", persona_groups),
    "sgd": TrainingSource("sgd_train.jsonl.gz", sgd_groups),
    "crd3": TrainingSource("crd3.jsonl.gz", crd3_groups),
    "qmsum": TrainingSource("qmsum_train.jsonl.gz", qmsum_groups),
    "squad": TrainingSource("squad_sentences.jsonl.gz", squad_groups),
    "nq_gold": TrainingSource("nq_gold.jsonl.gz", nq_groups),
    "policyqa": TrainingSource("policyqa.jsonl.gz", policyqa_groups),
    "timeqa": TrainingSource("timeqa_train.jsonl.gz", timeqa_groups),
}


# The endless stream of question groups that a run trains on, mixed from all sources.

Epoch = Callable[[Random], Iterator[QuestionGroup]]
"""Makes all groups of a source once; the generator decides order, names and wording."""


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The sources of a run.

    Attributes:
        epochs: What makes each source's groups.
        hashes: SHA-256 of each file, by its name.
        samples: File of generated memories, which is read again when it is used up; None makes new
            ones for every step.
    """

    epochs: Mapping[str, Epoch]
    hashes: Mapping[str, str]
    samples: Path | None = None


def load_training_data(folder: Path, names: Sequence[str]) -> TrainingData:
    """Read the files of the named sources.

    Raises:
        DatasetError: A file is missing or malformed.
        InvalidInput: A source is not known.
    """
    unknown = [name for name in names if name not in SOURCES]
    if unknown:
        raise InvalidInput("mix", unknown, "no such source", f"Known are {', '.join(SOURCES)}.")
    sources = {name: SOURCES[name] for name in names}
    epochs = {name: partial(each.groups, each.rows(folder)) for name, each in sources.items()}
    hashes = {each.name: each.sha256(folder) for each in sources.values()}
    return TrainingData(epochs, hashes)


def samples_alone(file: Path) -> TrainingData:
    """Return data of no question, and the generated memories of a file.

    Raises:
        InvalidInput: The file is empty.
    """
    if not file.stat().st_size:
        problem, remedy = "holds no sample", "Write some with `ekphory train generate`."
        raise InvalidInput("data", str(file), problem, remedy)
    return TrainingData({}, {"samples": sha256_of(file)}, file)


def mixed_groups(
    epochs: Mapping[str, Epoch],
    shares: Mapping[str, float],
    *,
    seed: int,
    long_messages: float = 0.0,
) -> Iterator[QuestionGroup]:
    """Return groups without end; the same seed gives the same groups.

    Args:
        epochs: What makes each source's groups; a source begins anew when it is used up.
        shares: How often a source is drawn; need not sum to 1.
        seed: Decides everything.
        long_messages: Share of the groups in which a speaker's turns are put together.
    """
    streams = {
        name: repeat_epochs(name, epochs[name], f"{seed}:{name}")
        for name in shares
        if shares[name] > 0
    }
    joining = Random(f"{seed}:long messages")  # noqa: S311  no secret
    for group in draw_by_share(streams, shares, Random(seed)):  # noqa: S311  no secret
        drawn = joining.random() < long_messages
        joined = drawn and not group.dated and not is_long(group)
        yield with_long_messages(group, joining) if joined else group


def draw_by_share(
    streams: Mapping[str, Iterator[Item]], shares: Mapping[str, float], random: Random
) -> Iterator[Item]:
    """Yield from streams that have no end, each as often as its share says."""
    weights = [shares[name] for name in streams]
    while True:
        yield next(streams[random.choices(list(streams), weights)[0]])


def repeat_epochs(name: str, epoch: Epoch, seed: str) -> Iterator[QuestionGroup]:
    """Return the groups of a source without end.

    Raises:
        DatasetError: It holds no question.
    """
    for number in count():
        found = False
        for group in epoch(Random(f"{seed}:{number}")):  # noqa: S311  no secret
            found = True
            yield group
        if not found:
            raise DatasetError(f"{name}: its file holds no question. Give the whole file.")


# Ages and types drawn at random: what must not decide where a question names neither.

FEWEST_TOGETHER, MOST_TOGETHER = 6, 24
"""How many neighbouring passages share an age, as the turns of a session do."""


@dataclass(frozen=True, slots=True)
class DrawnAges:
    """Age bucket and type of each passage of a group, shape (passages,) each."""

    ages: Codes
    types: Codes


def drawn_ages(passages: int, random: Random) -> DrawnAges:
    """Draw an age for each session of a group, and a type for each passage."""
    ages: list[int] = []
    while len(ages) < passages:
        together = random.randint(FEWEST_TOGETHER, MOST_TOGETHER)
        ages += [random.randrange(AGE_BUCKETS)] * together
    types = [random.randrange(len(MEMORY_TYPES)) for _ in range(passages)]
    return DrawnAges(np.array(ages[:passages], np.int64), np.array(types, np.int64))


# Long written passages, of which a step only wants that their vectors stay what they were.
#
# A model that learns conversations and short memories forgets what it knows of written text, and a
# search in documents finds less. Whole paragraphs under the anchor hold that.

_FEWEST_WORDS, _MOST_PASSAGE_WORDS = 8, 150
_FROM_A_GROUP = 4


@dataclass(frozen=True, slots=True)
class WrittenPassages:
    """The written passages of one step.

    Attributes:
        texts: What is encoded.
        base: The base model's vectors of them, rows of length 1.
        given: Age and type of each; None where they have neither.
    """

    texts: tuple[str, ...]
    base: FloatMatrix
    given: DrawnAges | None


def written_passages(
    config: EmbedderConfig, epochs: Mapping[str, Epoch], base: BaseModel, *, first: int
) -> Iterator[WrittenPassages | None]:
    """Return the written passages of each step from `first` on; None for steps without any.

    Args:
        config: How many a step has, and the share of steps in which they have an age and a type.
        epochs: What makes each source's groups.
        base: Gives the vectors that are to be kept.
        first: Which step comes first; a step's passages depend on nothing before it.
    """
    size = config.written.passages_per_step
    if not size:
        yield from repeat(None, config.steps - first)
        return
    texts = islice(_texts(epochs, config.written.mix, seed=config.seed), first * size, None)
    for step in range(first, config.steps):
        chosen = tuple(islice(texts, size))
        random = Random(f"{config.seed}:written:{step}")  # noqa: S311  no secret
        aged = random.random() < config.memories.aged_groups
        given = drawn_ages(size, random) if aged else None
        yield WrittenPassages(chosen, np.asarray(base.encode(chosen), np.float32), given)


def _texts(epochs: Mapping[str, Epoch], shares: Mapping[str, float], *, seed: int) -> Iterator[str]:
    random = Random(f"{seed}:written")  # noqa: S311  no secret
    for group in mixed_groups(epochs, shares, seed=seed + 1):
        for _ in range(_FROM_A_GROUP):
            start = random.randrange(len(group.passages))
            wanted = random.randint(_FEWEST_WORDS, _MOST_PASSAGE_WORDS)
            yield _paragraph(group.passages[start:], wanted)


def _paragraph(passages: Sequence[str], words: int) -> str:
    """Put neighbouring passages together until there are so many words."""
    text = passages[0]
    for passage in passages[1:]:
        if len(text.split()) >= words:
            break
        text = f"{text} {passage}"
    return shortened(text, words)
