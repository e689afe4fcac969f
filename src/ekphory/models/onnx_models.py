"""Models in ONNX files, run on the CPU without torch: a session, the embedder, the reranker."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as runtime_errors
from tokenizers import Encoding, Tokenizer

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.embedder import (
    CHARACTERS_PER_TOKEN,
    EmbedderIdentity,
    FloatMatrix,
    Offsets,
    VectorCache,
    batch_by_length,
    check_finite,
    find_best_piece,
    find_best_tokens,
    list_distinct_words,
    replace_lone_surrogates,
    split_behind_prefix,
)
from ekphory.models.late_bound import LateBoundParts, PassageReading
from ekphory.models.model_record import (
    LATE_BOUND_FILE,
    LAYOUT_NAME,
    MODEL_FILE,
    TOKENIZER_FILE,
    ModelRecord,
    read_checked,
    read_record,
    read_reranker_record,
)
from ekphory.models.reranker import (
    UNCALIBRATED,
    Judgement,
    JudgingReranker,
    LocalReranker,
    RelevanceScores,
    RerankPassage,
    RerankQuery,
)
from ekphory.threads import Workers, count_usable_cores, once_a_process
from ekphory.types import MEMORY_TYPES, format_date

# The `tokenizer.json` of a model directory.


def load_tokenizer(directory: Path, hashes: Mapping[str, str]) -> Tokenizer:
    """Read a tokenizer that neither pads nor cuts, and compare its hash with the recorded one.

    Raises:
        ModelError: The file is missing or changed, or holds no tokenizer.
    """
    path = directory / TOKENIZER_FILE
    content = read_checked(path, hashes[TOKENIZER_FILE])
    try:
        tokenizer = Tokenizer.from_str(content.decode("utf-8"))
    except Exception as error:  # tokenizers raises no narrower class
        problem = f"{path}: not a tokenizer that tokenizers can read ({error})"
        raise ModelError(f"{problem}. Export the model again.") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


# The session.

_PROCESSORS = Path("/proc/cpuinfo")
_VNNI_FLAGS = frozenset({"avx512_vnni", "avx_vnni"})

IntegerMatrix = NDArray[np.int64]
TokenRows = Sequence[Sequence[int]]

_ERRORS = (
    runtime_errors.EPFail,
    runtime_errors.Fail,
    runtime_errors.InvalidArgument,
    runtime_errors.InvalidGraph,
    runtime_errors.InvalidProtobuf,
    runtime_errors.NotImplemented,
    runtime_errors.RuntimeException,
    RuntimeError,
    ValueError,
)


class OnnxSession:
    """A loaded graph of `input_ids`, `attention_mask` and, for pairs, `token_type_ids`.

    ONNX Runtime gets no threads of its own: parallel runs in the caller's threads are as fast,
    burn no cores by spinning between runs, and survive a fork.
    """

    def __init__(self, model: bytes, name: str) -> None:
        """Load a graph.

        Raises:
            ModelError: ONNX Runtime refuses it.
        """
        self._name = name
        onnxruntime.disable_telemetry_events()
        try:
            cpu, settings = ["CPUExecutionProvider"], _options()
            self._session = onnxruntime.InferenceSession(model, settings, providers=cpu)
        except _ERRORS as error:
            raise self._failure("cannot be loaded", error) from error

    def run(
        self, outputs: Sequence[str], ids: TokenRows, *, type_ids: TokenRows | None = None
    ) -> list[FloatMatrix]:
        """Compute some outputs for a batch, in the order in which they are asked for.

        Args:
            outputs: Names of the outputs.
            ids: Tokens of each input.
            type_ids: Likewise; None for a graph that has no such input.

        Raises:
            ModelError: The graph cannot take these inputs.
        """
        return self.compute(outputs, pad_batch(ids, type_ids))

    def compute(
        self, outputs: Sequence[str], inputs: Mapping[str, NDArray[Any]]
    ) -> list[FloatMatrix]:
        """Compute outputs from inputs of these names.

        Raises:
            ModelError: The graph cannot take these inputs.
        """
        try:
            return cast(list[FloatMatrix], self._session.run(list(outputs), dict(inputs)))
        except _ERRORS as error:
            raise self._failure("cannot be run", error) from error

    def _failure(self, problem: str, error: Exception) -> ModelError:
        return ModelError(
            f"{self._name}: the model {problem} by ONNX Runtime {onnxruntime.__version__} "
            f"({error}). Export the model again, or upgrade onnxruntime."
        )


def pad_batch(ids: TokenRows, type_ids: TokenRows | None = None) -> dict[str, IntegerMatrix]:
    """Return a graph's inputs, all of the length of the longest; see `OnnxSession.run`."""
    inputs = {"input_ids": _pad(ids), "attention_mask": _pad([[1] * len(each) for each in ids])}
    return inputs if type_ids is None else inputs | {"token_type_ids": _pad(type_ids)}


def _pad(rows: TokenRows) -> IntegerMatrix:
    """Fill rows up with zeros to the length of the longest."""
    padded = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, each in zip(padded, rows, strict=True):
        row[: len(each)] = each
    return padded


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.enable_mem_pattern = False  # it keeps a plan for every shape of batch
    options.log_severity_level = 3
    if not has_vnni():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def load_session(directory: Path, hashes: Mapping[str, str]) -> OnnxSession:
    """Load the graph of a model directory, and compare its hash with the recorded one.

    Raises:
        ModelError: The file is missing or changed, or ONNX Runtime refuses it.
    """
    return OnnxSession(read_checked(directory / MODEL_FILE, hashes[MODEL_FILE]), str(directory))


# A list of any length, in batches for all threads.

TOKENS_PER_RUN = 512  # 12 to 20 texts of a chat: fits the cache of one core, measured fastest
INPUTS_PER_ROUND = 1024  # bounds the tokens in memory while a long list is computed
Input = TypeVar("Input")
Tokens = TypeVar("Tokens", bound=Sized)


@dataclass(frozen=True, slots=True)
class BatchedRun(Generic[Input, Tokens]):
    """Computes an output for each of many inputs.

    Attributes:
        workers: The threads.
        tokenise: Gives the tokens of some inputs.
        run: Gives the outputs for a batch of tokens.
    """

    workers: Workers
    tokenise: Callable[[Sequence[Input]], Sequence[Tokens]]
    run: Callable[[Sequence[Tokens]], NDArray[np.float32]]

    def fill(self, outputs: NDArray[np.float32], inputs: Sequence[Input]) -> None:
        """Write the output of each input into its row."""
        for start in range(0, len(inputs), INPUTS_PER_ROUND):
            self._fill_round(outputs[start:], inputs[start : start + INPUTS_PER_ROUND])

    def _fill_round(self, outputs: NDArray[np.float32], inputs: Sequence[Input]) -> None:
        threads = self.workers.threads
        share = -(-len(inputs) // threads)
        parts = [inputs[start : start + share] for start in range(0, len(inputs), share)]
        tokens = [each for part in self.workers.map(self.tokenise, parts) for each in part]

        def run(batch: list[int]) -> None:
            outputs[batch] = self.run([tokens[position] for position in batch])

        lengths = [len(each) for each in tokens]
        batches = batch_by_length(lengths, most_tokens=TOKENS_PER_RUN, threads=threads)
        self.workers.map(run, batches)


def has_vnni(*, processors: Path = _PROCESSORS) -> bool:
    """Tell whether the processor is known to add 8-bit products without saturation (VNNI).

    Older x86 processors saturate unless ONNX Runtime is asked for its exact mode, which costs two
    fifths of the speed where it is not needed. Only Linux tells; elsewhere the exact mode is taken.
    """
    try:
        with processors.open() as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return False
    return not _VNNI_FLAGS.isdisjoint(flags.split())


# The embedder.

BUNDLED = "ekphory-small"


class OnnxEmbedder:
    """An embedding model in a directory of `model.onnx`, `tokenizer.json` and `model.json`.

    A model that knows age and type has their vectors in `late_bound.npz` beside them.

    Safe to call from several threads: each call runs in its caller's thread, and a call with many
    texts on up to `threads` threads more. A single query takes one core.

    Attributes:
        directory: Where the model was read from.
        record: What `model.json` says.
        identity: Name, revision and dimension of the record.
        late_bound: Vectors of age and type; None for a model that knows neither.
    """

    def __init__(self, directory: Path | str, *, threads: int | None = None) -> None:
        """Load the model.

        Args:
            directory: Where the files are.
            threads: Most threads of one call; None takes the cores this process may use.

        Raises:
            ModelError: A file is missing, cut short or changed, or is not such a model.
        """
        folder = self.directory = Path(directory)
        record = self.record = read_record(folder)
        self.identity = EmbedderIdentity(record.name, record.revision, record.dimension)
        self._tokenizer = load_tokenizer(folder, record.files)
        self._session = load_session(folder, record.files)
        self.late_bound = _load_late_bound(folder, record)
        self._vector = {"embedding" if record.normalise else "pooled": record.dimension}
        self._workers = Workers(threads or count_usable_cores())
        self._queries = VectorCache()
        self._special_tokens = self._tokenizer.num_special_tokens_to_add(False)

    def __repr__(self) -> str:
        return f"OnnxEmbedder({self.identity})"

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed passages without age or type; shape (len(texts), dimension), rows of length 1.

        A vector does not depend on the texts beside it. Tokens beyond the model's window are left
        out: split longer text with `windows`.

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        return self._encode(texts, self.record.passage_prompt, self._vector)

    def read(self, texts: Sequence[str]) -> PassageReading:
        """Read passages in one pass: their content vectors, and what the heads say of them.

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        widths = {"content": self.record.dimension} if self.late_bound else dict(self._vector)
        heads = {"importance": 1, "memory_type": len(MEMORY_TYPES)}
        widths |= {name: heads[name] for name in heads if name in self.record.parts}
        joined = self._encode(texts, self.record.passage_prompt, widths)
        ends = np.cumsum(list(widths.values()))[:-1]
        content, *others = np.split(joined, ends, axis=1)
        said = dict(zip(list(widths)[1:], others, strict=True))
        importance = said["importance"][:, 0] if "importance" in said else None
        return PassageReading(np.ascontiguousarray(content), importance, said.get("memory_type"))

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries; the vectors of the last ones are kept and not computed again."""
        encode = partial(self._encode, prompt=self.record.query_prompt, widths=self._vector)
        return self._queries.encode(texts, missing=encode)

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into overlapping pieces that fit the model.

        Pieces end at sentences or words where they can. Each starts with `prefix`, of which no more
        is kept than fits half a window. A text that fits comes back as one piece.
        """
        room = self.record.max_tokens - self._special_tokens
        if _surely_fits(self.record.passage_prompt + prefix + text, prefix, room=room):
            return [prefix + text]
        tokenise = self.offsets
        room -= len(tokenise(self.record.passage_prompt))
        return split_behind_prefix(text, prefix, room=room, tokenise=tokenise, joint=1)

    def offsets(self, text: str) -> Offsets:
        """Return where each token of a text begins and ends, without special tokens."""
        whole = replace_lone_surrogates(text)
        return self._tokenizer.encode(whole, add_special_tokens=False).offsets

    def _encode(self, texts: Sequence[str], prompt: str, widths: Mapping[str, int]) -> FloatMatrix:
        """Return the outputs of these names and widths side by side."""
        vectors = np.empty((len(texts), sum(widths.values())), dtype=np.float32)
        tokenise, run = partial(self._token_ids, prompt), partial(self._run, list(widths))
        BatchedRun(self._workers, tokenise, run).fill(vectors, texts)
        check_finite(vectors, model=str(self.identity))
        return vectors

    def _token_ids(self, prompt: str, texts: Sequence[str]) -> list[list[int]]:
        # one by one: encode_batch starts threads of its own, as many as the machine has CPUs
        longest = self.record.max_tokens * CHARACTERS_PER_TOKEN
        given = (replace_lone_surrogates((prompt + text)[:longest]) for text in texts)
        encodings = map(self._tokenizer.encode, given)
        return [_truncated(encoding, self.record.max_tokens) for encoding in encodings]

    def _run(self, outputs: Sequence[str], inputs: Sequence[Sequence[int]]) -> FloatMatrix:
        values = self._session.run(outputs, inputs)
        if len(values) == 1:
            return values[0]
        return np.concatenate([value.reshape(len(inputs), -1) for value in values], axis=1)


def _surely_fits(whole: str, prefix: str, *, room: int) -> bool:
    """Tell without tokenising: no tokenizer makes more than one token of an ASCII character."""
    return len(whole) < room and len(prefix) <= room // 2 and whole.isascii()


@once_a_process
def load_bundled() -> OnnxEmbedder:
    """Return the model that comes with ekphory; loaded once a process, then shared.

    Raises:
        ModelError: Its files are missing or broken.
    """
    return OnnxEmbedder(Path(str(files("ekphory.models"))) / "bundled" / BUNDLED)


def _load_late_bound(directory: Path, record: ModelRecord) -> LateBoundParts | None:
    if "late_bound" not in record.parts:
        return None
    content = read_checked(directory / LATE_BOUND_FILE, record.files[LATE_BOUND_FILE])
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return LateBoundParts(arrays["age"], arrays["type"])


def _truncated(encoding: Encoding, most_tokens: int) -> list[int]:
    """Cut to the window, but keep the special tokens at the end."""
    ids = encoding.ids
    if len(ids) <= most_tokens:
        return ids
    ending = encoding.special_tokens_mask[::-1].index(0)
    return ids[: most_tokens - ending] + ids[len(ids) - ending :]


# How the bundled cross-encoder reads a question and a memory: training and inference both use it.
#
#     [CLS] context / context / question [SEP] target (8 May 2023) [SEP] before [SEP] after [SEP]
#
# The type id is 0 up to and with the first [SEP] and 1 after it. What is long is cut: of the
# question its beginning counts, of the context and of the turn before their end, of the turn after
# its beginning, and of the target the window that shares most words with the question.

MOST_QUERY_TOKENS = 64
MOST_TARGET_TOKENS = 128
"""The date included, which is never cut."""
MOST_NEIGHBOUR_TOKENS = {"ekphory-turn-2": (12, 12), "ekphory-turn-3": (24, 16)}
"""Of the turn before and of the turn after, by the name of the layout."""
MOST_TOKENS = (
    1 + MOST_QUERY_TOKENS + 1 + MOST_TARGET_TOKENS + 1 + sum(MOST_NEIGHBOUR_TOKENS[LAYOUT_NAME]) + 2
)
TURN_MARK = " / "
_KEPT_TEXTS = 2048
_LONGEST_KEPT = 512
"""In characters: what is kept takes a few megabytes."""


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """The question's side of a pair, tokenised once for all passages.

    Attributes:
        ids: Token ids from [CLS] to the first [SEP].
        words: The question's words, by which a long target is cut; those of the context not.
    """

    ids: list[int]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class PairTokens:
    """What the model reads: token ids and type ids of equal length, at most `MOST_TOKENS`."""

    ids: list[int]
    type_ids: list[int]

    def __len__(self) -> int:
        return len(self.ids)


class PairLayout:
    """What all layouts of two texts have in common. Safe to call from several threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take a copy of the tokenizer that neither pads nor cuts, to which "[SEP]" is text.

        Raises:
            ModelError: It knows no [CLS] or [SEP].
        """
        own = self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        own.no_padding()
        own.no_truncation()
        own.encode_special_tokens = True
        self._start = find_special_token(own, "[CLS]")
        self._end = find_special_token(own, "[SEP]")

    def _best_ids(self, text: str, words: frozenset[str], *, most: int, room: int) -> Sequence[int]:
        """Return the window of at most `room` tokens of a text that holds most of the words."""
        piece = find_best_piece(text, words, most_tokens=most)
        ids = self._ids(piece)
        if len(ids) <= room:
            return ids
        offsets = self._tokenizer.encode(piece, add_special_tokens=False).offsets
        return ids[slice(*find_best_tokens(piece, offsets, words, most=room))]

    def _ids(self, text: str) -> Sequence[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids


class CrossEncoderLayout(PairLayout):
    """Turns questions and passages into tokens. Safe to call from several threads.

    Attributes:
        name: Of the layout.
    """

    def __init__(self, tokenizer: Tokenizer, *, name: str = LAYOUT_NAME) -> None:
        """Take a copy of the tokenizer that neither pads nor cuts.

        Args:
            tokenizer: The model's.
            name: Which layout, as the model's record says.

        Raises:
            ModelError: It knows no [CLS] or [SEP].
        """
        super().__init__(tokenizer)
        self.name = name
        self._most_before, self._most_after = MOST_NEIGHBOUR_TOKENS[name]
        # A turn is the target of one pair and the neighbour of two others, in search after search.
        self._kept = lru_cache(_KEPT_TEXTS)(super()._ids)

    def query(self, query: RerankQuery) -> QueryTokens:
        """Tokenise the question's side."""
        asked = self._beginning(query.text, MOST_QUERY_TOKENS)
        said = self._said_before(query.context, MOST_QUERY_TOKENS - len(asked))
        ids = [self._start, *said, *asked, self._end]
        return QueryTokens(ids, list_distinct_words(replace_lone_surrogates(query.text)))

    def pair(self, query: QueryTokens, passage: RerankPassage) -> PairTokens:
        """Tokenise a passage's side, and put the question's before it."""
        before = self._ending(passage.before or "", self._most_before)
        after = self._beginning(passage.after or "", self._most_after)
        parts = [self._target(passage, query.words), before, after]
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        tail = [token for part in parts for token in (*part, self._end)]
        type_ids = [0] * len(query.ids) + [1] * len(tail)
        return PairTokens(query.ids + tail, type_ids)

    def pairs(self, query: RerankQuery, passages: Sequence[RerankPassage]) -> list[PairTokens]:
        """Tokenise a question with each of some passages."""
        return self.pairs_with(self.query(query), passages)

    def pairs_with(self, query: QueryTokens, passages: Sequence[RerankPassage]) -> list[PairTokens]:
        """Tokenise the passages' side, with a question that is tokenised already."""
        return [self.pair(query, passage) for passage in passages]

    def _said_before(self, context: Sequence[str], room: int) -> list[int]:
        if not context or room <= 0:
            return []
        return self._ending(TURN_MARK.join([*context[-room:], ""]), room)

    def _target(self, passage: RerankPassage, words: frozenset[str]) -> list[int]:
        date = () if passage.at is None else self._ids(f"({format_date(passage.at)})")
        room = MOST_TARGET_TOKENS - len(date)
        text = replace_lone_surrogates(passage.text)
        return [*self._best_ids(text, words, most=MOST_TARGET_TOKENS, room=room), *date]

    def _beginning(self, text: str, most: int) -> list[int]:
        return list(self._ids(replace_lone_surrogates(text[: most * CHARACTERS_PER_TOKEN]))[:most])

    def _ending(self, text: str, most: int) -> list[int]:
        ending = replace_lone_surrogates(text[-most * CHARACTERS_PER_TOKEN :])
        return list(self._ids(ending)[-most:])

    def _ids(self, text: str) -> Sequence[int]:
        return self._kept(text) if len(text) <= _LONGEST_KEPT else super()._ids(text)


def find_special_token(tokenizer: Tokenizer, token: str) -> int:
    """Return the id of a mark of the layout.

    Raises:
        ModelError: The tokenizer does not know it.
    """
    known = tokenizer.token_to_id(token)
    if known is None:
        problem = f"The tokenizer knows no {token}, which the layout {LAYOUT_NAME!r} needs"
        raise ModelError(f"{problem}. Give a tokenizer of a BERT-like model.")
    return int(known)


# A check that a model's weights, tokenizer and layout belong together.

PROBES = (
    (
        "What is the capital of China?",
        "The capital of China is Beijing.",
        "Python is a popular programming language.",
    ),
    (
        "Where does the sister of Anna live?",
        "Anna: My sister Clara will live in Lisbon from May on.",
        "Ben: The train to work was late again.",
    ),
)
"""Question, answer, and what is not an answer."""


def check_order(model: LocalReranker) -> None:
    """Score known pairs, and refuse a model that puts one the wrong way round.

    Raises:
        ModelError: It does, or gives numbers that are not finite.
    """
    for question, answer, other in PROBES:
        passages = [RerankPassage(answer), RerankPassage(other)]
        right, wrong = model.judge(RerankQuery(question), passages).raw.tolist()
        if not right > wrong:
            raise ModelError(
                f"{model.name}: failed the check at loading: for {question!r} it scores {answer!r} "
                f"with {right:.4g}, not above {other!r} with {wrong:.4g}. Weights, tokenizer and "
                "layout do not belong together, or it is not a reranker: export it again, or take "
                "another model."
            )


# The reranker itself.

_LOGIT_OF_NOTHING = -30.0
"""Of a passage without a letter or a digit."""


class OnnxReranker(JudgingReranker):
    """A cross-encoder in a directory of `model.onnx`, `tokenizer.json` and `model.json`.

    The graph takes `input_ids`, `attention_mask` and `token_type_ids`, all int64 of shape
    (batch, tokens), and gives `logits` of shape (batch,) or (batch, 1).

    Safe to call from several threads: each call runs on up to `threads` threads.

    Attributes:
        record: What `model.json` says.
        name, model_id, calibration: As its record says.
        batch_size: Enough passages to keep every core at work.
        is_calibrated: Whether its record has a calibration.
    """

    batch_size = 32

    def __init__(self, directory: Path | str, *, threads: int | None = None) -> None:
        """Load the model, and check that it ranks known pairs rightly.

        Args:
            directory: Where the files are.
            threads: Most threads of one call; None takes the cores this process may use.

        Raises:
            ModelError: A file is missing, cut short or changed, or is not such a model.
        """
        folder = Path(directory)
        self.record = read_reranker_record(folder)
        self.name, self.model_id = self.record.name, self.record.model_id
        self.calibration = self.record.calibration
        self.is_calibrated = self.calibration is not None
        self._scaling = UNCALIBRATED if self.calibration is None else self.calibration.scaling
        tokenizer = load_tokenizer(folder, self.record.files)
        self._layout = CrossEncoderLayout(tokenizer, name=self.record.layout)
        self._session = load_session(folder, self.record.files)
        self._workers = Workers(threads or count_usable_cores())
        check_order(self)

    def __repr__(self) -> str:
        return f"OnnxReranker({self.name!r}, revision {self.record.revision})"

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return probabilities, shape (len(passages),), and the logits that they are made from.

        A score does not depend on the passages beside it. The model reads context, date and
        neighbours; it knows no `now` and no type.

        Raises:
            InvalidInput: The query has an instruction, which the model cannot read.
            ModelError: The model gives numbers that are not finite, or too many.
        """
        if query.instruction is not None:
            problem = f"{self.name} cannot be told what is relevant"
            remedy = "Leave it out, or take a model that can, such as MemReranker"
            raise InvalidInput("instruction", query.instruction, problem, remedy)
        asked = self._layout.query(query)
        logits = np.empty(len(passages), np.float32)
        tokenise = partial(self._layout.pairs_with, asked)
        BatchedRun(self._workers, tokenise, self._run).fill(logits, passages)
        check_finite(logits, model=repr(self))
        # The model never saw a text that says nothing, and takes it for an answer.
        says_nothing = [not any(map(str.isalnum, passage.text)) for passage in passages]
        logits[np.array(says_nothing, np.bool_)] = _LOGIT_OF_NOTHING
        return Judgement(self._scaling.probabilities(logits), logits)

    def _run(self, pairs: Sequence[PairTokens]) -> RelevanceScores:
        ids, type_ids = [pair.ids for pair in pairs], [pair.type_ids for pair in pairs]
        (given,) = self._session.run(["logits"], ids, type_ids=type_ids)
        if given.size != len(pairs):
            problem = f"{self!r}: gave logits of shape {given.shape} for {len(pairs)} passages"
            raise ModelError(f"{problem}. Export a model with one logit for each.")
        return given.reshape(-1)
