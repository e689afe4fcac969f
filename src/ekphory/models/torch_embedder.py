"""Embeds with a sentence-transformers or AgentRank model, through the `[torch]` extra."""

from __future__ import annotations

import hashlib
import json
import pickle
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ekphory import legacy
from ekphory.errors import InvalidInput, MissingExtra, ModelError
from ekphory.models import embedder, late_bound

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


_LOADING_ERRORS = (OSError, ValueError, RuntimeError, KeyError, TypeError, pickle.UnpicklingError)


@contextmanager
def translate_loading_errors(name_or_path: str, *, what: str, problem: str) -> Iterator[None]:
    """Raise `MissingExtra` for a library that is missing, and `ModelError` for what cannot be read.

    Args:
        name_or_path: The model.
        what: What kind of model it is.
        problem: What went wrong, if it cannot be read.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra("torch", f"The {what} {name_or_path!r}") from error
    except _LOADING_ERRORS as error:
        remedy = "Give a model directory, or a hub id with the network at hand."
        raise ModelError(f"{name_or_path}: {problem} ({error}). {remedy}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchOptions:
    """How a model that torch or vLLM runs is loaded.

    Attributes:
        device: Torch device; None takes a GPU where there is one.
        dtype: What its weights are held in: `float32`, `bfloat16`, `float16`, or `auto` for their
            own; None leaves it to the library, or to the device.
        attn_implementation: How attention is computed: `eager`, `sdpa`, `flash_attention_2`.
        device_map: Which part goes where, as accelerate reads it; then `device` stays away.
        model_kwargs: Further arguments of transformers' `from_pretrained`.
        tokens_per_batch: Most tokens of one run, padding counted in; None for a number of texts.
        engine: Further arguments of vLLM's `LLM`, such as `gpu_memory_utilization`.
    """

    device: str | None = None
    dtype: str | None = None
    attn_implementation: str | None = None
    device_map: str | Mapping[str, Any] | None = None
    model_kwargs: Mapping[str, Any] = field(default_factory=dict)
    tokens_per_batch: int | None = None
    engine: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.device is not None and self.device_map is not None:
            remedy = "Give one of the two"
            raise InvalidInput("device", self.device, "stands beside a device_map", remedy)
        if self.tokens_per_batch is not None and self.tokens_per_batch < 1:
            problem = "must be 1 or more"
            raise InvalidInput("tokens_per_batch", self.tokens_per_batch, problem, "Give a count")

    def model_arguments(self) -> dict[str, Any]:
        """Return the arguments of transformers' `from_pretrained`."""
        names = ("dtype", "attn_implementation", "device_map")
        named = {name: value for name in names if (value := getattr(self, name)) is not None}
        return {**named, **self.model_kwargs}


NO_OPTIONS = TorchOptions()


def read_options(text: str, *, field: str) -> TorchOptions:
    """Read options that are written as a JSON object.

    Args:
        text: The object, whose keys are the attributes of `TorchOptions`.
        field: What the caller knows it by.

    Raises:
        InvalidInput: It is something else.
    """
    try:
        return TorchOptions(**json.loads(text))
    except (ValueError, TypeError) as error:
        known = ", ".join(each.name for each in fields(TorchOptions))
        problem = f"must be a JSON object of options ({error})"
        raise InvalidInput(field, text, problem, f"Known are {known}") from error


def name_model(name_or_path: str) -> str:
    """Return the name of a directory; a hub id is its own name."""
    return Path(name_or_path).name if Path(name_or_path).is_dir() else name_or_path


@contextmanager
def hide_weight_progress() -> Iterator[None]:
    """Keep transformers from drawing its bar while it reads weights; downloads keep theirs.

    The bar goes to stderr, where a command prints its own progress and the one sentence of an
    error. Needs transformers.
    """
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


# The directories that torch models are read from and written to.
#
# | layout                 | known by                          | gives               |
# |------------------------|-----------------------------------|---------------------|
# | ekphory's              | `ekphory_components.safetensors`  | all parts           |
# | AgentRank's            | `agentrank_components.pt`         | all but a type head |
# | sentence-transformers' | neither                           | vectors alone       |
#
# A directory that ekphory saved may have both files, and is read as ekphory's; AgentRank, saving
# there again, drops the mark that says so.

SavedFormat = Literal["transformers", "onnx", "agentrank"]

AGENTRANK_FILE = "agentrank_components.pt"
AGENTRANK_MAX_TOKENS = 512
AGENTRANK_SCALE = np.float32(0.1)
"""AgentRank multiplies its vectors of age and type by this before it adds them."""
_AGENTRANK_NAMES = {
    "temporal_embeddings": {"weight": "age.weight"},
    "memory_type_embeddings": {"weight": "type.weight"},
    "projection": {"weight": "projection.weight", "bias": "projection.bias"},
    "importance_head": {
        "0.weight": "importance.0.weight",
        "0.bias": "importance.0.bias",
        # 1 is the ReLU and 2 the dropout
        "3.weight": "importance.2.weight",
        "3.bias": "importance.2.bias",
    },
}
_POOLING_FILE = "1_Pooling/config.json"


class TorchModel(NamedTuple):
    """A model in memory.

    Attributes:
        encoder: Gives pooled vectors where there are components, else finished ones.
        components: What reads and follows the pooled vectors; None for a plain model.
    """

    encoder: SentenceTransformer
    components: late_bound.EmbedderComponents | None


def load_torch_model(name_or_path: str, *, options: TorchOptions = NO_OPTIONS) -> TorchModel:
    """Load a directory or a hub id in any of the three layouts.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        ModelError: It cannot load the model.
    """
    problem = "sentence-transformers cannot load this model"
    with translate_loading_errors(name_or_path, what="embedder", problem=problem):
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.util import load_file_path

        path = load_file_path(name_or_path, AGENTRANK_FILE)
        if path and (found := _load_agentrank(name_or_path, Path(path), options)):
            return found
        with hide_weight_progress():
            told = options.model_arguments() or None
            model = SentenceTransformer(name_or_path, device=options.device, model_kwargs=told)
        written = legacy.find_written_name(
            late_bound.COMPONENTS_FILE, lambda name: load_file_path(name_or_path, name) is not None
        )
        if path := load_file_path(name_or_path, written):
            return _without_projection(model, late_bound.read_components(Path(path).parent))
        return TorchModel(model, None)


def _list_modules(model: SentenceTransformer) -> list[str]:
    return [type(module).__name__ for module in model]


def _projection_modules(components: late_bound.EmbedderComponents) -> list[Any]:
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize

    weight, bias = map(torch.tensor, (components.projection.weight, components.projection.bias))
    kept, width = torch.nn.Identity(), components.dimension
    dense = Dense(width, width, activation_function=kept, init_weight=weight, init_bias=bias)
    return [dense, Normalize()]


def _without_projection(
    model: SentenceTransformer, components: late_bound.EmbedderComponents | None
) -> TorchModel:
    from sentence_transformers import SentenceTransformer

    kinds = _list_modules(model)
    if kinds != ["Transformer", "Pooling", "Dense", "Normalize"]:
        raise ModelError(
            f"{late_bound.COMPONENTS_FILE}: stands beside modules {', '.join(kinds)}, not "
            "Transformer, Pooling, Dense, Normalize. Save the model again."
        )
    encoder = SentenceTransformer(
        modules=[model[0], model[1]], prompts=dict(model.prompts), device=str(model.device)
    )
    return TorchModel(encoder, components)


def _load_agentrank(name_or_path: str, path: Path, options: TorchOptions) -> TorchModel | None:
    """Return the model; None where ekphory wrote the file beside components of its own."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    stored: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    if stored["config"].get(late_bound.COMPONENTS_FILE):
        return None
    tensors: dict[str, NDArray[Any]] = {
        ours: stored[part][theirs].float().numpy()
        for part, names in _AGENTRANK_NAMES.items()
        for theirs, ours in names.items()
    }
    for name in ("age.weight", "type.weight"):
        tensors[name] = tensors[name] * AGENTRANK_SCALE
    components = late_bound.build_components(tensors, where=path)
    transformer = Transformer(name_or_path, model_kwargs=options.model_arguments())
    pooling = Pooling(components.dimension, str(stored["config"]["pooling"]))
    encoder = SentenceTransformer(modules=[transformer, pooling], device=options.device)
    longest = getattr(transformer.auto_model.config, "max_position_embeddings", None)
    encoder.max_seq_length = min(AGENTRANK_MAX_TOKENS, longest or AGENTRANK_MAX_TOKENS)
    return TorchModel(encoder, components)


def write_agentrank_components(directory: Path) -> None:
    """Write AgentRank's file into a directory of ekphory's layout, so that `agentrank` loads it.

    AgentRank's importance head has half as many hidden channels as the encoder: a smaller head is
    filled up with zeros, which changes nothing. A head for types it has not.

    Raises:
        InvalidInput: The model has other parts than AgentRank's.
        MissingExtra: torch or safetensors is not installed.
    """
    parts, pooling = late_bound.read_components(directory), read_pooling(directory)
    head = None if parts is None else parts.importance
    if parts is None or head is None or 2 * len(head[0].bias) > parts.dimension or not pooling:
        problem = "needs age, type, an importance head, and the mean or the first token"
        raise InvalidInput("formats", "agentrank", problem, "Leave it out for this model")
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("torch", f"Writing {directory / AGENTRANK_FILE}") from error
    age, kind = parts.age / AGENTRANK_SCALE, parts.type / AGENTRANK_SCALE
    wide = _widened(*head, width=parts.dimension // 2)
    tensors = late_bound.component_tensors(replace(parts, age=age, type=kind, importance=wide))
    content: dict[str, Any] = {
        part: {theirs: torch.tensor(tensors[ours]) for theirs, ours in names.items()}
        for part, names in _AGENTRANK_NAMES.items()
    }
    config = {"pooling": pooling, "hidden_dim": parts.dimension, late_bound.COMPONENTS_FILE: True}
    torch.save({**content, "config": config}, directory / AGENTRANK_FILE)


def read_pooling(directory: Path) -> str | None:
    """Return `mean`, also where nothing says what, or `cls`; None for another pooling."""
    if not (directory / _POOLING_FILE).is_file():
        return "mean"
    config = json.loads((directory / _POOLING_FILE).read_text(encoding="utf-8"))
    for kind, key in {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}.items():
        if config.get("pooling_mode") == kind or config.get(key):
            return kind
    return None


def _widened(
    first: late_bound.Linear, second: late_bound.Linear, *, width: int
) -> tuple[late_bound.Linear, late_bound.Linear]:
    missing = width - len(first.bias)
    inner = np.pad(first.weight, ((0, missing), (0, 0))), np.pad(first.bias, (0, missing))
    outer = np.pad(second.weight, ((0, 0), (0, missing)))
    return late_bound.Linear(*inner), late_bound.Linear(outer, second.bias)


# How a sentence-transformers model cuts a text into tokens, and how many it reads at once.

FALLBACK_MAX_TOKENS = 512
"""Of models that name no window, as those that take the mean of static word vectors."""


def _read_window(model: Any) -> tuple[embedder.Tokenise, int]:  # noqa: ANN401  torch's
    """Return what tokenises a text, and the most tokens of prompt and text together."""
    if isinstance(model.tokenizer, Tokenizer):
        return _static_window(model.tokenizer)
    tokenizer = model.tokenizer

    settings = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}

    def offsets(text: str) -> embedder.Offsets:
        tokens = tokenizer(embedder.replace_lone_surrogates(text), **settings)
        return [(int(start), int(end)) for start, end in tokens["offset_mapping"]]

    special = int(tokenizer.num_special_tokens_to_add(pair=False))
    return offsets, (model.max_seq_length or FALLBACK_MAX_TOKENS) - special


def _static_window(tokenizer: Tokenizer) -> tuple[embedder.Tokenise, int]:
    """Leave room for as many tokens as the tokenizer lets be; none of them is special."""
    truncation = tokenizer.truncation
    whole = Tokenizer.from_str(tokenizer.to_str())
    whole.no_truncation()

    def offsets(text: str) -> embedder.Offsets:
        given = embedder.replace_lone_surrogates(text)
        return whole.encode(given, add_special_tokens=False).offsets

    return offsets, truncation["max_length"] if truncation else FALLBACK_MAX_TOKENS


# The embedder.

BATCH_SIZE = 64
_HASHED_SUFFIXES = frozenset({".safetensors", ".bin", ".json", ".txt", ".model", ".pt"})


class TorchEmbedder:
    """A model that torch runs. Safe to call from several threads, one at a time computes.

    The table above says which directories it reads.

    Attributes:
        identity: Name, hash of the files (of a hub model: its commit) and dimension.
        late_bound: Vectors of age and type; None for a model that knows neither.
        offsets: Says where each token of a text begins and ends, without special tokens.
    """

    def __init__(self, name_or_path: str, *, options: TorchOptions = NO_OPTIONS) -> None:
        """Load the model.

        Args:
            name_or_path: A model directory, or a hub id, which may be downloaded.
            options: How it is loaded, and how many tokens it reads at once.

        Raises:
            MissingExtra: sentence-transformers is not installed.
            ModelError: It cannot load the model.
        """
        self._tokens_per_batch = options.tokens_per_batch
        self._model, self._components = load_torch_model(name_or_path, options=options)
        self.late_bound = None if self._components is None else self._components.late_bound()
        self.offsets, self._room = _read_window(self._model)
        self._lock = threading.Lock()
        self._queries = embedder.VectorCache()
        dimension = self._model.encode(["dimension"], show_progress_bar=False).shape[1]
        name, revision = name_model(name_or_path), _find_revision(name_or_path, self._model)
        self.identity = embedder.EmbedderIdentity(name, revision, int(dimension))

    def __repr__(self) -> str:
        return f"TorchEmbedder({self.identity})"

    def encode(self, texts: Sequence[str]) -> embedder.FloatMatrix:
        """Embed passages without age or type, with the model's document prompt; rows of length 1.

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        return self._encode(self._model.encode_document, texts)

    def read(self, texts: Sequence[str]) -> late_bound.PassageReading:
        """Read passages in one pass: their content vectors, and what the heads say of them.

        Raises:
            ModelError: The model gives numbers that are not finite.
        """
        if self._components is None:
            return late_bound.PassageReading(self.encode(texts))
        pooled, parts = self._pooled(self._model.encode_document, texts), self._components
        importance, types = parts.importance_of(pooled), parts.type_logits_of(pooled)
        return late_bound.PassageReading(parts.content(pooled), importance, types)

    @property
    def formats(self) -> tuple[SavedFormat, ...]:
        """What the model can be saved in; as ONNX only BERT with mean pooling and no more."""
        kinds = _list_modules(self._model)
        if kinds[:2] != ["Transformer", "Pooling"] or set(kinds[2:]) - {"Normalize"}:
            return ("transformers",)
        config = self._model[0].auto_model.config
        pooling = self._model[1].get_config_dict().get("pooling_mode")
        known = (config.model_type, getattr(config, "hidden_act", None), pooling)
        is_exportable = known == ("bert", "gelu", "mean")
        return ("transformers", "onnx") if is_exportable else ("transformers",)

    def save(self, directory: Path) -> None:
        """Write ekphory's layout, or for a plain model sentence-transformers'.

        The directory loads in plain `AutoModel` and `SentenceTransformer`; the latter gives content
        vectors of length 1.
        """
        from sentence_transformers import SentenceTransformer

        encoder, components = self._model, self._components
        if components is None:
            encoder.save(str(directory), create_model_card=False)
            # Those of a model that stood here before.
            (directory / late_bound.COMPONENTS_FILE).unlink(missing_ok=True)
            return
        modules = [*encoder, *_projection_modules(components)]
        whole = SentenceTransformer(
            modules=modules, prompts=dict(encoder.prompts), device=str(encoder.device)
        )
        whole.save(str(directory), create_model_card=False)
        late_bound.write_components(components, directory)

    def encode_query(self, texts: Sequence[str]) -> embedder.FloatMatrix:
        """Embed queries, with the model's query prompt; the last ones are kept."""
        return self._queries.encode(texts, missing=partial(self._encode, self._model.encode_query))

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split `prefix + text` into overlapping pieces that fit the model.

        Of a prefix no more is kept than fits half a window.
        """
        tokenise = self.offsets
        room = self._room - max(map(len, map(tokenise, self._model.prompts.values())), default=0)
        return embedder.split_behind_prefix(text, prefix, room=room, tokenise=tokenise, joint=1)

    def _encode(self, encode: Any, texts: Sequence[str]) -> embedder.FloatMatrix:  # noqa: ANN401  torch's
        pooled, parts = self._pooled(encode, texts), self._components
        return late_bound.normalised(pooled if parts is None else parts.content(pooled))

    def _pooled(self, encode: Any, texts: Sequence[str]) -> embedder.FloatMatrix:  # noqa: ANN401  torch's
        if not texts:
            return np.empty((0, self.identity.dimension), dtype=np.float32)
        given = [embedder.replace_lone_surrogates(text) for text in texts]
        result = np.empty((len(given), self.identity.dimension), dtype=np.float32)
        with self._lock:
            for batch in self._batches(given):
                result[batch] = encode(
                    [given[place] for place in batch],
                    batch_size=len(batch) if self._tokens_per_batch else BATCH_SIZE,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
        embedder.check_finite(result, model=str(self.identity))
        return result

    def _batches(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Return the places of the texts by run; all at once where only their number counts."""
        if self._tokens_per_batch is None:
            return [range(len(texts))]
        lengths = [min(len(self.offsets(text)), self._room) for text in texts]
        return embedder.batch_by_length(lengths, most_tokens=self._tokens_per_batch)


def _find_revision(name_or_path: str, model: Any) -> str:  # noqa: ANN401  torch's
    directory = Path(name_or_path)
    if directory.is_dir():
        return _hash_directory(directory)
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return str(getattr(config, "_commit_hash", None) or "unknown")[:16]


def _hash_directory(directory: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.suffix in _HASHED_SUFFIXES:
            digest.update(path.relative_to(directory).as_posix().encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
