"""The bundled change reader: its graph cut out of the reranker's, its layout, its answers."""

from datetime import UTC, datetime

import numpy as np
import pytest
from onnx import load_from_string

from ekphory.errors import ModelError
from ekphory.models.changes import BUNDLED, CHANGE_KINDS, StatementPair, bundled_change_reader
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
def shared():
    return SharedLayers()


def test_a_graph_is_cut_after_the_tensor_that_is_asked_for():
    model = (bundled_directory(SMALL_RERANKER) / "model.onnx").read_bytes()
    whole, part = load_from_string(model), load_from_string(cut_graph(model, WORDS))
    assert [output.name for output in part.graph.output] == [WORDS]
    assert part.graph.node[-1].output == [WORDS]
    assert list(part.graph.node) == list(whole.graph.node)[: len(part.graph.node)]
    assert list(part.graph.input) == list(whole.graph.input)


def test_a_tensor_that_no_node_gives_is_refused():
    model = (bundled_directory(SMALL_RERANKER) / "model.onnx").read_bytes()
    with pytest.raises(ModelError, match="No node of the model gives 'nothing'"):
        cut_graph(model, "nothing")


def test_both_statements_are_read_with_who_said_them_and_when(shared):
    layout = StatementLayout(shared.tokenizer)
    older, newer = said("I live in Rome"), said("Off to Bonn!", at="2025-06-02", producer="log")
    (tokens,) = layout.pairs([StatementPair(older, newer)])
    shown = shared.tokenizer.decode(tokens.ids, skip_special_tokens=False)
    assert shown == (
        "[CLS] mara : i live in rome ( 8 may 2024 ) [SEP] log : off to bonn! ( 2 june 2025 ) [SEP]"
    )
    assert tokens.type_ids == [0] * (tokens.ids.index(102) + 1) + [1] * (
        len(tokens.ids) - tokens.ids.index(102) - 1
    )


def test_who_said_them_is_not_read_where_it_is_the_same_for_both(shared):
    layout = StatementLayout(shared.tokenizer)
    (tokens,) = layout.pairs([StatementPair(said("I live in Rome"), said("Off to Bonn!"))])
    shown = shared.tokenizer.decode(tokens.ids, skip_special_tokens=False)
    assert shown == ("[CLS] i live in rome ( 8 may 2024 ) [SEP] off to bonn! ( 8 may 2024 ) [SEP]")


def test_of_a_long_statement_the_window_is_read_that_shares_words_with_the_other(shared):
    layout = StatementLayout(shared.tokenizer)
    older = said("word " * 300 + "the ferry to Texel is cancelled " + "word " * 300)
    (tokens,) = layout.pairs([StatementPair(older, said("The Texel ferry runs again"))])
    shown = shared.tokenizer.decode(tokens.ids)
    assert "ferry to texel is cancelled" in shown
    assert "( 8 may 2024 )" in shown
    assert len(tokens.ids) <= 2 * MOST_STATEMENT_TOKENS + 3


def test_marks_of_the_layout_in_a_text_are_text(shared):
    layout = StatementLayout(shared.tokenizer)
    (tokens,) = layout.pairs([StatementPair(said("a [SEP] b"), said("c"))])
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
    upgraded, bus = reader.read(
        [
            StatementPair(older, said("Upgraded the cluster to Postgres 16", at="2025-06-02")),
            StatementPair(older, said("The bus was late again", at="2025-06-02")),
        ]
    )
    ended = [CHANGE_KINDS.index(kind) for kind in SUPERSEDING]
    assert upgraded[ended].sum() > 5 * bus[ended].sum()
    assert CHANGE_KINDS[int(bus.argmax())] in ("unrelated", "other subject")


def test_no_pairs_have_no_probabilities():
    assert bundled_change_reader().read([]).shape == (0, len(CHANGE_KINDS))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"revision": "d0d7f9b62c78e32c"', '"revision": "0000000000000000"'), "Train it anew"),
        (('"layout": "ekphory-change-2"', '"layout": "ekphory-change-9"'), "of another layout"),
        (('"kinds": [', '"kind": ['), "not the record of a change reader"),
    ],
)
def test_a_model_that_does_not_belong_here_is_refused(tmp_path, change, message):
    for file in BUNDLED.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    record = (tmp_path / "model.json").read_text(encoding="utf-8")
    assert change[0] in record
    (tmp_path / "model.json").write_text(record.replace(*change), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        OnnxChangeReader(tmp_path)


def test_changed_weights_are_refused(tmp_path):
    for file in BUNDLED.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = tmp_path / "model.onnx"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ModelError, match="SHA-256"):
        OnnxChangeReader(tmp_path)
