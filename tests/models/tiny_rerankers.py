"""Rerankers small enough for a test, each in a directory as its library writes it."""

import re
from pathlib import Path

from onnx import parser
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from ekphory.errors import ModelError
from ekphory.models.model_record import MODEL_FILE, TOKENIZER_FILE, RerankerRecord, seal_reranker
from ekphory.models.onnx_models import PROBES, load_bundled

TINY = {
    **{"hidden_size": 32, "intermediate_size": 64, "initializer_range": 0.5},
    **{"num_hidden_layers": 2, "num_attention_heads": 4},
}
SPECIAL = 1000
"""Token ids below are marks and pieces that the bundled tokenizer seldom gives to words."""

OVERLAP = Path(__file__).with_name("overlap_graph.txt").read_text(encoding="utf-8")
"""Counts, over the tokens of type 1, those that stand among the tokens of type 0."""


def write_overlap_reranker(
    directory: Path, record=None, *, out="Identity (counts)", shape=(-1,)
) -> Path:
    """Write an ONNX reranker whose logit is the number of passage tokens that the question has.

    Args:
        directory: Made if needed.
        record: What it says of itself.
        out: What is made of the numbers; `Neg (counts)` ranks the wrong way round.
        shape: Of the logits.
    """
    directory.mkdir(parents=True, exist_ok=True)
    sizes = ", ".join(map(str, shape))
    text = OVERLAP.format(least=SPECIAL, rank=len(shape), shape=sizes, out=out)
    (directory / MODEL_FILE).write_bytes(parser.parse_model(text).SerializeToString())
    bundled = load_bundled().directory / TOKENIZER_FILE
    (directory / TOKENIZER_FILE).write_bytes(bundled.read_bytes())
    seal_reranker(record or RerankerRecord(name="overlap"), directory)
    return directory


def write_cross_encoder(directory: Path, *, seed: int, labels: int = 1, prompts=None) -> Path:
    """Write a random BERT with a classifier, by the `CrossEncoder` of sentence-transformers."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    raw, tokenizer = directory / "raw", word_tokenizer()
    raw.mkdir(parents=True)
    tokenizer.save(str(raw / "tokenizer.json"))
    fast = BertTokenizerFast(tokenizer_file=str(raw / "tokenizer.json"), model_max_length=64)
    fast.save_pretrained(raw)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=64,
        num_labels=labels,
        **TINY,
    )
    BertForSequenceClassification(config).save_pretrained(raw)
    model = CrossEncoder(str(raw), prompts=prompts, default_prompt_name=prompts and "query")
    model.save(str(directory / "model"))
    return directory / "model"


def write_first(directory: Path, write, load, *, ranks_rightly: bool = True) -> Path:
    """Write the first model whose random weights put the probes the right way round, or do not."""
    for seed in range(50):
        written = write(directory / f"seed-{seed}", seed=seed)
        try:
            load(str(written))
        except ModelError:
            is_right = False
        else:
            is_right = True
        if is_right == ranks_rightly:
            return written
    raise AssertionError("no seed does")


def word_tokenizer() -> Tokenizer:
    """A tokenizer of BERT's kind that knows the words of the probes, and all else by its letters.

    It is written down, not trained: `WordPieceTrainer` breaks ties in another order every time.
    """
    words = {word for probe in PROBES for text in probe for word in re.findall(r"\w+", text)}
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = [*sorted(word.lower() for word in words), *letters, *(f"##{each}" for each in letters)]
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,:?"]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([*marks, *pieces]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(marks[:5])
    return tokenizer


def write_yes_no_model(directory: Path, *, seed: int, head: int = 8) -> Path:
    """Write a random Qwen3 with a tokenizer of bytes that knows `yes` and `no`."""
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    directory.mkdir(parents=True)
    tokenizer = byte_tokenizer()
    marks = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks)
    wrapped.save_pretrained(directory)
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(),
        num_key_value_heads=2,
        head_dim=head,
        tie_word_embeddings=True,
        **TINY,
    )
    Qwen3ForCausalLM(config).save_pretrained(directory)
    return directory


def byte_tokenizer() -> Tokenizer:
    """A tokenizer of Qwen's kind: bytes, few merges, and the marks of a dialogue."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("n", "o"), ("y", "e"), ("ye", "s"), ("t", "h"), ("th", "e"), ("Ġ", "the")]
    words = [*alphabet, *("".join(pair) for pair in merges)]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in marks])
    tokenizer.add_tokens([AddedToken(mark, special=False) for mark in ("<think>", "</think>")])
    return tokenizer
