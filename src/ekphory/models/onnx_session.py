"""An ONNX model on disk: its record, its tokenizer, and a session for many threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as runtime_errors
from tokenizers import Tokenizer

from ekphory.errors import ModelError
from ekphory.models.embedder import FloatMatrix, batch_by_length
from ekphory.models.model_record import MODEL_FILE, TOKENIZER_FILE, read_checked
from ekphory.threads import Workers

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
    mask = [[1] * len(each) for each in ids]
    inputs = {"input_ids": _pad(ids), "attention_mask": _pad(mask)}
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
