"""Embeds on the CPU with ONNX Runtime, without torch."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

import numpy as np
from tokenizers import Encoding

from ekphory.models import embedder
from ekphory.models.late_bound import LateBoundParts, PassageReading
from ekphory.models.model_record import LATE_BOUND_FILE, ModelRecord, read_checked, read_record
from ekphory.models.onnx_session import BatchedRun, load_session, load_tokenizer
from ekphory.threads import ForkSafeLock, Workers, count_usable_cores
from ekphory.types import MEMORY_TYPES

BUNDLED = "ekphory-small"
QUERY_CACHE = 1024


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
        self.identity = embedder.EmbedderIdentity(record.name, record.revision, record.dimension)
        self._tokenizer = load_tokenizer(folder, record.files)
        self._session = load_session(folder, record.files)
        self.late_bound = _load_late_bound(folder, record)
        self._vector = {"embedding" if record.normalise else "pooled": record.dimension}
        self._workers = Workers(threads or count_usable_cores())
        self._queries = embedder.VectorCache(QUERY_CACHE)
        self._special_tokens = self._tokenizer.num_special_tokens_to_add(False)

    def __repr__(self) -> str:
        return f"OnnxEmbedder({self.identity})"

    def encode(self, texts: Sequence[str]) -> embedder.FloatMatrix:
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

    def encode_query(self, texts: Sequence[str]) -> embedder.FloatMatrix:
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
        tokenise = self._offsets
        room -= len(tokenise(self.record.passage_prompt))
        return embedder.split_behind_prefix(text, prefix, room=room, tokenise=tokenise, joint=1)

    def _offsets(self, text: str) -> embedder.Offsets:
        whole = embedder.replace_lone_surrogates(text)
        return self._tokenizer.encode(whole, add_special_tokens=False).offsets

    def _encode(
        self, texts: Sequence[str], prompt: str, widths: Mapping[str, int]
    ) -> embedder.FloatMatrix:
        """Return the outputs of these names and widths side by side."""
        vectors = np.empty((len(texts), sum(widths.values())), dtype=np.float32)
        tokenise, run = partial(self._token_ids, prompt), partial(self._run, list(widths))
        BatchedRun(self._workers, tokenise, run).fill(vectors, texts)
        embedder.check_finite(vectors, model=str(self.identity))
        return vectors

    def _token_ids(self, prompt: str, texts: Sequence[str]) -> list[list[int]]:
        # one by one: encode_batch starts threads of its own, as many as the machine has CPUs
        longest = self.record.max_tokens * embedder.CHARACTERS_PER_TOKEN
        given = (embedder.replace_lone_surrogates((prompt + text)[:longest]) for text in texts)
        encodings = map(self._tokenizer.encode, given)
        return [_truncated(encoding, self.record.max_tokens) for encoding in encodings]

    def _run(self, outputs: Sequence[str], inputs: Sequence[Sequence[int]]) -> embedder.FloatMatrix:
        values = self._session.run(outputs, inputs)
        if len(values) == 1:
            return values[0]
        return np.concatenate([value.reshape(len(inputs), -1) for value in values], axis=1)


def _surely_fits(whole: str, prefix: str, *, room: int) -> bool:
    """Tell without tokenising: no tokenizer makes more than one token of an ASCII character."""
    return len(whole) < room and len(prefix) <= room // 2 and whole.isascii()


def load_bundled() -> OnnxEmbedder:
    """Return the model that comes with ekphory; loaded once a process, then shared.

    Raises:
        ModelError: Its files are missing or broken.
    """
    with _BUNDLED_LOCK:
        return _load_bundled_once()


_BUNDLED_LOCK = ForkSafeLock()


@cache
def _load_bundled_once() -> OnnxEmbedder:
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
