"""The bundled change reader: its graph cut out of the reranker's, its layout, its answers."""

import shutil
from datetime import UTC, datetime

import numpy as np
import pytest
from onnx import load_from_string

from ekphory.errors import ModelError
from ekphory.models import captures, changes
from ekphory.models.changes import CHANGE_KINDS, StatementPair, bundled_change_reader
from ekphory.models.onnx_capture_reader import OnnxCaptureReader
from ekphory.models.onnx_change_reader import (
    MOST_STATEMENT_TOKENS,
    OnnxChangeReader,
    StatementLayout,
)
from ekphory.models.reranker import SMALL_RERANKER, bundled_directory
from ekphory.models.shared_layers import WORDS, SharedLayers, cut_graph
from ekphory.types import SUPERSEDING, MemoryRecord


def said(text, *, at="2024-05-08", producer="Mara"):
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    return MemoryRecord(id=text, text=text, at=moment, created_at=moment, producer=producer)


@pytest.fixture(scope="module")
def read():
    """Returns the tokens of a pair, and the text that they are."""
    tokenizer = SharedLayers().tokenizer
    layout = StatementLayout(tokenizer)

    def read(older, newer):
        (tokens,) = layout.pairs([StatementPair(older, newer)])
        return tokens, tokenizer.decode(tokens.ids, skip_special_tokens=False)

    return read


def test_a_graph_is_cut_after_the_tensor_that_is_asked_for():
    model = (bundled_directory(SMALL_RERANKER) / "model.onnx").read_bytes()
    whole, part = load_from_string(model), load_from_string(cut_graph(model, WORDS))
    assert [output.name for output in part.graph.output] == [WORDS]
    assert part.graph.node[-1].output == [WORDS]
    assert list(part.graph.node) == list(whole.graph.node)[: len(part.graph.node)]
    assert list(part.graph.input) == list(whole.graph.input)

    # A tensor that no node gives is refused.
    with pytest.raises(ModelError, match="No node of the model gives 'nothing'"):
        cut_graph(model, "nothing")


def test_both_statements_are_read_with_when_and_with_who_said_them_where_that_differs(read):
    tokens, shown = read(
        said("I live in Rome"), said("Off to Bonn!", at="2025-06-02", producer="log")
    )
    assert shown == (
        "[CLS] mara : i live in rome ( 8 may 2024 ) [SEP] log : off to bonn! ( 2 june 2025 ) [SEP]"
    )
    first = tokens.ids.index(102) + 1
    assert tokens.type_ids == [0] * first + [1] * (len(tokens.ids) - first)
    _, shown = read(said("I live in Rome"), said("Off to Bonn!"))
    assert shown == ("[CLS] i live in rome ( 8 may 2024 ) [SEP] off to bonn! ( 8 may 2024 ) [SEP]")


def test_of_a_long_statement_the_window_is_read_that_shares_words_with_the_other(read):
    older = said("word " * 300 + "the ferry to Texel is cancelled " + "word " * 300)
    tokens, shown = read(older, said("The Texel ferry runs again"))
    assert "ferry to texel is cancelled" in shown
    assert "( 8 may 2024 )" in shown
    assert len(tokens.ids) <= 2 * MOST_STATEMENT_TOKENS + 3


def test_marks_of_the_layout_in_a_text_are_text(read):
    tokens, _ = read(said("a [SEP] b"), said("c"))
    assert tokens.ids.count(102) == 2


def test_each_pair_gets_a_probability_of_every_kind_whatever_stands_beside_it():
    reader = bundled_change_reader()
    pairs = [
        StatementPair(said("I live in Rome"), said("I moved to Bonn in May", at="2025-06-02")),
        StatementPair(said("My tea was cold"), said("The bus was late", at="2025-06-02")),
    ]
    found = reader.read(pairs)
    assert found.shape == (2, len(CHANGE_KINDS))
    assert np.allclose(found.sum(axis=1), 1, atol=1e-5)
    alone = np.concatenate([reader.read([pair]) for pair in pairs])
    assert np.allclose(found, alone, atol=1e-4)


def test_a_change_of_a_number_is_told_from_what_has_nothing_to_do_with_it():
    reader = bundled_change_reader()
    older = said("We use Postgres 14")
    texts = ("Upgraded the cluster to Postgres 16", "The bus was late again")
    pairs = [StatementPair(older, said(text, at="2025-06-02")) for text in texts]
    upgraded, bus = reader.read(pairs)
    ended = [CHANGE_KINDS.index(kind) for kind in SUPERSEDING]
    assert upgraded[ended].sum() > 5 * bus[ended].sum()
    assert CHANGE_KINDS[int(bus.argmax())] in ("unrelated", "other subject")
    # No pairs have no probabilities.
    assert bundled_change_reader().read([]).shape == (0, len(CHANGE_KINDS))


OTHER_LAYERS = ('"revision": "d0d7f9b62c78e32c"', '"revision": "0000000000000000"')


@pytest.mark.parametrize(
    ("reader", "change", "message"),
    [
        (OnnxChangeReader, OTHER_LAYERS, "Train it anew"),
        (OnnxChangeReader, ("ekphory-change-2", "ekphory-change-9"), "of another layout"),
        (OnnxChangeReader, ('"kinds": [', '"kind": ['), "not the record of a change reader"),
        (OnnxChangeReader, ('"model.onnx": "', '"model.onnx": "0'), "SHA-256"),
        (OnnxCaptureReader, OTHER_LAYERS, "Train it anew"),
        (OnnxCaptureReader, ("ekphory-capture-1", "ekphory-capture-9"), "of another layout"),
        (OnnxCaptureReader, ('"classes": [', '"class": ['), "not the record of a capture reader"),
    ],
)
def test_a_model_that_does_not_belong_here_is_refused(tmp_path, reader, change, message):
    bundled = changes.BUNDLED if reader is OnnxChangeReader else captures.BUNDLED
    record = shutil.copytree(bundled, tmp_path / "model") / "model.json"
    text = record.read_text(encoding="utf-8")
    assert change[0] in text
    record.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        reader(record.parent)
