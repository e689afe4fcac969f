"""The models in torch: a cross-encoder, or a language model that answers yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from ekphory.errors import InvalidInput, MissingExtra, ModelError
from ekphory.models.model_record import LAYOUT_NAME, TOKENIZER_FILE
from ekphory.models.onnx_models import CrossEncoderLayout, PairTokens
from ekphory.models.torch_reranker import YesNoPrompt
from ekphory.threads import count_usable_cores
from ekphory_lab.training.encoder import (
    Tensor,
    load_agent_encoder,
    load_parts,
    load_transformer,
    mixed_precision,
    training_device,
)
from ekphory_lab.training.reranker.config import LoraShape
from ekphory_lab.training.reranker.examples import RerankExample
from ekphory_lab.training.reranker.export import HEAD_FILE, LAYOUT_KEY, read_layout_name
from ekphory_lab.training.run_files import Precision

# What both models give the training loop. Needs torch.


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Pairs padded to one length; tensors of shape (pairs, tokens).

    Attributes:
        ids: Token ids.
        mask: 1 for each token, 0 for padding.
        type_ids: Which side a token belongs to; None for models that do not ask.
    """

    ids: Tensor
    mask: Tensor
    type_ids: Tensor | None = None


def training_logits(model: PairModel, batch: PairBatch, *, precision: Precision = "auto") -> Tensor:
    """Score pairs; `auto` is the device's fastest precision."""
    with mixed_precision(batch.ids.device.type, precision):
        return model.logits(batch)


def trained_weights(model: PairModel) -> dict[str, Tensor]:
    """Return the weights that require gradients, by name."""
    return {name: weight for name, weight in model.parts.named_parameters() if weight.requires_grad}


# The cross-encoder in torch: one encoder reads question and passage together.
#
#     logit = a · cos(W u + b, W v + b) + c + h · tanh(D m + d)
#
# u is the mean over the question's tokens, v over the target's, m over all of them. The first part
# is what a sentence encoder says, with eyes on the other side, so a model that starts from one
# ranks from its first step on; the second part learns what a cosine cannot say. [CLS] is not read:
# sentence encoders train the mean, and their [CLS] knows nothing of its own. Needs torch.

HEAD_PARTS = ("projection", "match", "dense", "out")
_FIRST_SLOPE, _FIRST_INTERCEPT = 10.0, -5.0
_FIRST_WEIGHTS = 0.02


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """The trainable parts, and how pairs become tokens.

    Attributes:
        parts: `encoder`, `projection` (W), `match` (a, c), `dense` (D) and `out` (h).
        tokenizer: The encoder's.
        layout: How pairs become tokens.
    """

    parts: Any
    tokenizer: Tokenizer
    layout: CrossEncoderLayout

    @property
    def separator(self) -> int:
        """Token id of [SEP]."""
        # The layout has refused a tokenizer without one.
        return int(self.tokenizer.token_to_id("[SEP]") or 0)

    @property
    def device(self) -> Any:  # noqa: ANN401  torch's
        """Where the weights are, and the tokens go."""
        return self.parts["projection"].weight.device

    @property
    def workers(self) -> int:
        """One chunk for each core: on a busy machine no thread waits for another. On a GPU one."""
        return count_usable_cores() if self.device.type == "cpu" else 1

    def pairs(self, example: RerankExample) -> Sequence[PairTokens]:
        """Tokenise an example's candidates with its question."""
        passages = [candidate.passage for candidate in example.candidates]
        return self.layout.pairs(example.query, passages)

    def logits(self, batch: PairBatch) -> Tensor:
        """Score pairs; shape (pairs,), in float."""
        encoder = self.parts["encoder"]
        types = {"token_type_ids": batch.type_ids} if _knows_types(encoder) else {}
        states = encoder(
            input_ids=batch.ids, attention_mask=batch.mask, **types
        ).last_hidden_state.float()
        ends = (batch.ids == self.separator).long()
        # How many parts have ended before each token: 0 in the question, 1 in the target.
        part = ends.cumsum(dim=1) - ends
        present = batch.mask.bool()
        question = self._vector(_mean(states, present & (part == 0)))
        target = self._vector(_mean(states, present & (part == 1)))
        cosine = (question * target).sum(dim=1, keepdim=True)
        rest = torch.tanh(_linear(self.parts["dense"], _mean(states, present)))
        scores = _linear(self.parts["match"], cosine) + _linear(self.parts["out"], rest)
        return scores.squeeze(1)

    def batch(self, pairs: Sequence[Any]) -> PairBatch:
        """Pad pairs to the longest."""
        width = max(len(pair.ids) for pair in pairs)

        def padded(rows: Sequence[Sequence[int]]) -> Tensor:
            table = [[*row, *[0] * (width - len(row))] for row in rows]
            return torch.tensor(table, device=self.device)

        return PairBatch(
            padded([pair.ids for pair in pairs]),
            padded([[1] * len(pair.ids) for pair in pairs]),
            padded([pair.type_ids for pair in pairs]),
        )

    def save(self, directory: Path) -> None:
        """Write encoder, tokenizer and head; the same weights give the same files."""
        directory.mkdir(parents=True, exist_ok=True)
        self.parts["encoder"].save_pretrained(directory)
        self.tokenizer.save(str(directory / TOKENIZER_FILE), pretty=False)
        head = {
            f"{part}.{name}": weight.detach().contiguous()
            for part in HEAD_PARTS
            for name, weight in self.parts[part].state_dict().items()
        }
        save_file(head, directory / HEAD_FILE, metadata={LAYOUT_KEY: self.layout.name})

    def _vector(self, mean: Tensor) -> Tensor:
        return nn.functional.normalize(_linear(self.parts["projection"], mean), dim=1)


def load_cross_encoder(directory: Path) -> CrossEncoder:
    """Read a cross-encoder that was saved here, or start one from a sentence encoder.

    Raises:
        ModelError: The directory cannot be loaded.
    """
    if (directory / HEAD_FILE).is_file():
        return _saved(directory)
    sentence = load_agent_encoder(directory)
    parts = _with_new_head(sentence.parts["encoder"], sentence.parts["projection"])
    model = _with_tokenizer(parts, directory)
    _teach_marks(parts["encoder"].get_input_embeddings().weight, model.tokenizer)
    return model


def with_layers(model: CrossEncoder, layers: Sequence[int]) -> CrossEncoder:
    """Return a copy that has only these layers, from 0, in this order.

    Raises:
        InvalidInput: There is no such layer.
    """
    parts = deepcopy(model.parts)
    encoder = parts["encoder"]
    known = len(encoder.encoder.layer)
    if any(not 0 <= layer < known for layer in layers):
        raise InvalidInput(
            "layers", tuple(layers), f"the base has {known}", f"Give numbers from 0 to {known - 1}."
        )
    encoder.encoder.layer = nn.ModuleList(encoder.encoder.layer[layer] for layer in layers)
    encoder.config.num_hidden_layers = len(layers)
    return CrossEncoder(parts, model.tokenizer, model.layout)


def with_exit(model: CrossEncoder, layer: int) -> CrossEncoder:
    """Return a model of the first layers, which are the model's own, with a new head.

    Raises:
        InvalidInput: The model has not more layers.
    """
    encoder = model.parts["encoder"]
    known = len(encoder.encoder.layer)
    if not 0 < layer < known:
        raise InvalidInput(
            "exit_layer", layer, f"the base has {known}", f"Give a number from 1 to {known - 1}."
        )
    early = deepcopy(encoder)
    early.embeddings = encoder.embeddings
    early.encoder.layer = nn.ModuleList(encoder.encoder.layer[:layer])
    early.config.num_hidden_layers = layer
    projection = deepcopy(model.parts["projection"])
    parts = _with_new_head(early, projection).to(model.device)
    return CrossEncoder(parts, model.tokenizer, model.layout)


def _saved(directory: Path) -> CrossEncoder:
    encoder = load_transformer(directory, add_pooling_layer=False)
    size = int(encoder.config.hidden_size)
    parts = _with_new_head(encoder, nn.Linear(size, size))
    load_parts(parts, directory / HEAD_FILE, {part: part for part in HEAD_PARTS})
    return _with_tokenizer(parts, directory, layout=read_layout_name(directory))


def _with_new_head(encoder: Any, projection: Any) -> Any:  # noqa: ANN401  torch's modules
    size = int(encoder.config.hidden_size)
    encoder.pooler = None  # it reads [CLS]
    match, dense, out = nn.Linear(1, 1), nn.Linear(size, size), nn.Linear(size, 1, bias=False)
    nn.init.constant_(match.weight, _FIRST_SLOPE)
    nn.init.constant_(match.bias, _FIRST_INTERCEPT)
    nn.init.normal_(out.weight, std=_FIRST_WEIGHTS)
    return nn.ModuleDict(
        {"encoder": encoder, "projection": projection, "match": match, "dense": dense, "out": out}
    )


def _with_tokenizer(
    parts: Any,  # noqa: ANN401  torch's modules
    directory: Path,
    *,
    layout: str = LAYOUT_NAME,
) -> CrossEncoder:
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Save the model with a fast tokenizer.")
    tokenizer = Tokenizer.from_file(str(path))
    reading = CrossEncoderLayout(tokenizer, name=layout)
    return CrossEncoder(parts.to(training_device()), tokenizer, reading)


def _knows_types(encoder: Any) -> bool:  # noqa: ANN401  torch's module
    """Return whether an encoder tells question and passage apart by token types; MPNet does not."""
    return int(getattr(encoder.config, "type_vocab_size", 0)) > 1


def _teach_marks(words: Any, tokenizer: Tokenizer) -> None:  # noqa: ANN401  torch's weights
    """Begin the layout's marks as those that the encoder knows, where it has others."""
    for mark, own in (("[CLS]", "<s>"), ("[SEP]", "</s>")):
        known = tokenizer.token_to_id(own)
        if known is not None:
            words.data[tokenizer.token_to_id(mark)] = words.data[known]


def _mean(states: Tensor, chosen: Tensor) -> Tensor:
    weights = chosen.unsqueeze(-1).float()
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def _linear(layer: Any, value: Tensor) -> Tensor:  # noqa: ANN401  torch's modules
    # Outside of autocast's reach the head stays in float.
    with torch.autocast(value.device.type, enabled=False):
        return nn.functional.linear(value.float(), layer.weight, layer.bias)


# A causal language model that answers yes or no, with adapters of low rank to be trained.
#
# Its logit is logit(yes) - logit(no) at the last position. Needs torch and peft.

ADAPTER_FOLDER = "adapter"


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """One prompt, which ends where the answer begins."""

    ids: list[int]


@dataclass(frozen=True, slots=True)
class YesNoModel:
    """The language model with its adapters.

    Attributes:
        parts: The model, wrapped by peft.
        tokenizer: Its tokenizer.
        prompt: How a pair is asked for.
    """

    parts: Any
    tokenizer: Any
    prompt: YesNoPrompt

    @property
    def workers(self) -> int:
        """One: a chunk fills the machine."""
        return 1

    def pairs(self, example: RerankExample) -> Sequence[PromptTokens]:
        """Write a prompt for each candidate."""
        passages = [candidate.passage for candidate in example.candidates]
        return [PromptTokens(ids) for ids in self.prompt.token_ids(example.query, passages)]

    def batch(self, pairs: Sequence[Any]) -> PairBatch:
        """Pad on the left, so that all prompts end together."""
        width = max(len(pair.ids) for pair in pairs)
        empty = int(self.tokenizer.pad_token_id or 0)

        def padded(rows: list[list[int]], value: int) -> Tensor:
            table = [[*[value] * (width - len(row)), *row] for row in rows]
            return torch.tensor(table, device=self.parts.device)

        return PairBatch(
            padded([pair.ids for pair in pairs], empty),
            padded([[1] * len(pair.ids) for pair in pairs], 0),
        )

    def logits(self, batch: PairBatch) -> Tensor:
        """Score prompts; shape (prompts,), in float."""
        given = self.parts(
            input_ids=batch.ids, attention_mask=batch.mask, use_cache=False, logits_to_keep=1
        ).logits[:, -1, :]
        return given[:, self.prompt.yes].float() - given[:, self.prompt.no].float()

    def save(self, directory: Path) -> None:
        """Write the adapters alone, and beside them the model with the adapters added in."""
        directory.mkdir(parents=True, exist_ok=True)
        self.parts.save_pretrained(directory / ADAPTER_FOLDER)
        self.parts.merge_and_unload().save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)


def load_yes_no_model(directory: Path, shape: LoraShape) -> YesNoModel:
    """Load a model and put new adapters beside its projections; only they are trained.

    It goes to the GPU where there is one, in bfloat16, else it stays in float.

    Raises:
        MissingExtra: peft is not installed.
        ModelError: The directory cannot be loaded, or the model cannot say yes and no.
    """
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise MissingExtra("train", "Training by LoRA", package="ekphory-lab") from error
    on_gpu = torch.cuda.is_available()
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(
            directory, local_files_only=True, dtype=torch.bfloat16 if on_gpu else torch.float32
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{directory}: cannot be loaded as a causal language model ({error})."
        ) from error
    adapters = LoraConfig(
        task_type="CAUSAL_LM",
        r=shape.rank,
        lora_alpha=shape.scale,
        # None: chunks are computed twice, and have to come out the same.
        lora_dropout=0.0,
        target_modules=list(shape.targets),
    )
    wrapped = get_peft_model(model.to("cuda" if on_gpu else "cpu"), adapters)
    return YesNoModel(wrapped, tokenizer, YesNoPrompt(tokenizer, most_tokens=shape.most_tokens))


PairModel: TypeAlias = CrossEncoder | YesNoModel
"""What gives one logit for each pair."""
