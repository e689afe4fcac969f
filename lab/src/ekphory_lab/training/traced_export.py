"""Exports an encoder of any build as ONNX: torch writes down what it computes. Needs torch."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from onnxruntime import InferenceSession
from tokenizers import Tokenizer
from torch import nn

from ekphory.errors import ModelError
from ekphory.models.late_bound import EmbedderComponents, read_components
from ekphory.models.model_record import TOKENIZER_FILE, ModelRecord
from ekphory.models.onnx_export import ExportParts, ModelDescription, write_export
from ekphory.models.onnx_graph import IR_VERSION, ONNX_OPSET, TEXT_INPUTS
from ekphory.models.torch_embedder import read_pooling
from ekphory_lab.training.encoder import AgentEncoder, Tensor, load_agent_encoder

_CHECKED = ((1, 3), (2, 9), (3, 40))
"""Texts and tokens of the batches for which ONNX Runtime must give what torch gives."""
_TOLERANCE = 1e-3


class _Traced(nn.Module):  # type: ignore[misc]  # torch is read as untyped
    """What the graph computes: the outputs of `onnx_graph.build_encoder`, by name."""

    def __init__(self, encoder: AgentEncoder, components: EmbedderComponents | None) -> None:
        super().__init__()
        self.parts = encoder.parts
        self._encoder = encoder
        heads = ("importance", "memory_type")
        self._heads = [head for head in heads if getattr(components, head, None) is not None]
        self.names = ["embedding", "pooled", *(["content"] if components else []), *self._heads]

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        encoder = self._encoder
        tokens = {"input_ids": input_ids, "attention_mask": attention_mask}
        pooled = encoder.pooled(tokens)
        content = encoder.project(pooled)
        found = {
            "embedding": nn.functional.normalize(content, dim=1),
            "pooled": pooled,
            "content": content,
        }
        if "importance" in self._heads:
            found["importance"] = encoder.importance(pooled)
        if "memory_type" in self._heads:
            found["memory_type"] = encoder.memory_type_logits(pooled)
        return tuple(found[name] for name in self.names)


def export_traced_embedder(
    source: Path, target: Path, *, description: ModelDescription
) -> ModelRecord:
    """Write what `export_embedder` writes, in 32-bit float, of an encoder with mean pooling.

    Args:
        source: A sentence-transformers model, or one that was trained here.
        target: Made if needed; the files in it are replaced.
        description: What the record says about the model.

    Raises:
        ModelError: The source cannot be loaded, or what was exported gives other numbers.
    """
    if read_pooling(source) != "mean":
        raise ModelError(f"{source / '1_Pooling'}: only mean pooling can be exported.")
    encoder, components = load_agent_encoder(source), read_components(source)
    model = _Traced(encoder, components).eval()
    content = _trace(model)
    _check(model, content, source, most_tokens=encoder.max_tokens)
    graph = onnx.load_from_string(content)
    graph.ir_version = IR_VERSION
    parts = ExportParts(
        components=components,
        dimension=encoder.dimension,
        tokenizer=Tokenizer.from_file(str(source / TOKENIZER_FILE)),
        max_tokens=encoder.max_tokens,
        prompts=encoder.prompts,
    )
    made_by = {"quantisation": "float32", "traced": torch.__version__}
    return write_export(parts, graph, target, description=description, made_by=made_by)


def _trace(model: _Traced) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # Of what torch warns of, shapes that are written down as constants, `_check` finds out.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            _batch((2, 7)),
            stream,
            input_names=list(TEXT_INPUTS),
            output_names=model.names,
            dynamic_axes={name: {0: "batch"} for name in model.names}
            | {name: {0: "batch", 1: "tokens"} for name in TEXT_INPUTS},
            opset_version=ONNX_OPSET,
            dynamo=False,
        )
    return stream.getvalue()


def _batch(shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return token ids, and a mask in which the last text is shorter than the others."""
    ids = torch.arange(int(np.prod(shape))).reshape(*shape) % 11 + 4
    mask = torch.ones_like(ids)
    if len(ids) > 1:
        mask[-1, shape[1] // 2 :] = 0
    return ids, mask


def _check(model: _Traced, content: bytes, source: Path, *, most_tokens: int) -> None:
    session = InferenceSession(content, providers=["CPUExecutionProvider"])
    for texts, tokens in _CHECKED:
        batch = _batch((texts, min(tokens, most_tokens)))
        with torch.no_grad():
            wanted = model(*batch)[0].numpy()
        given = dict(zip(TEXT_INPUTS, (each.numpy() for each in batch), strict=True))
        found = session.run(["embedding"], given)[0]
        if np.abs(found - wanted).max() > _TOLERANCE:
            kind = model.parts["encoder"].config.model_type
            raise ModelError(
                f"{source}: ONNX Runtime gives other vectors than torch for this {kind}. "
                "Run it with torch: Embedder.from_pretrained(directory)."
            )
