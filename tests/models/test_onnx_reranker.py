"""A cross-encoder in ONNX, told with a graph that counts the words that both sides share."""

import json
import random
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.tiny_rerankers import write_overlap_reranker
from tokenizers import Tokenizer, models

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.model_record import (
    TOKENIZER_FILE,
    CalibrationCard,
    RerankerRecord,
    is_reranker,
    read_reranker_record,
    seal_reranker,
)
from ekphory.models.onnx_models import (
    MOST_NEIGHBOUR_TOKENS,
    MOST_QUERY_TOKENS,
    MOST_TARGET_TOKENS,
    MOST_TOKENS,
    CrossEncoderLayout,
    OnnxReranker,
    load_bundled,
)
from ekphory.models.reranker import (
    SMALL_RERANKER,
    TINY_RERANKER,
    RerankPassage,
    RerankQuery,
    bundled_directory,
)

MEASURED = {"measured": {"ece/dev": 0.03}, "thresholds": {"0.9": 0.7}}
CARD = CalibrationCard(slope=2.0, intercept=-1.0, data="sgd", **MEASURED)
QUERY = RerankQuery("red dog")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    record = RerankerRecord(name="tiny", calibration=CARD, licence="Apache-2.0")
    return write_overlap_reranker(tmp_path_factory.mktemp("onnx"), record)


@pytest.fixture(scope="module")
def reranker(directory):
    return OnnxReranker(directory, threads=2)


def logits(reranker, texts, query=QUERY):
    return reranker.judge(query, [RerankPassage(text) for text in texts]).raw.tolist()


def test_scores_are_the_logits_of_each_passage_calibrated(reranker):
    # Each passage gets its own logit and scores are the logits calibrated.
    texts = ["a red cat", "the red dog", "a cat"]
    scores = reranker.score(QUERY, [RerankPassage(text) for text in texts])
    assert logits(reranker, texts) == [1.0, 2.0, 0.0]
    assert scores.dtype == np.float32
    assert scores == pytest.approx(1 / (1 + np.exp([-1, -3, 1])))
    # No passage gives no score.
    scores = reranker.score(QUERY, [])
    assert (scores.shape, scores.dtype) == ((0,), np.float32)
    # Neighbours and context are read.
    alone = logits(reranker, ["a cat"])
    passage = RerankPassage("a cat", before="Ann: a red one", after="Ann: a dog")
    assert reranker.judge(QUERY, [passage]).raw.tolist() == [alone[0] + 2]
    asked = RerankQuery("red dog", context=("Ann: my cat",))
    assert logits(reranker, ["a cat"], asked) == [alone[0] + 1]
    # An instruction that it cannot follow is refused.
    with pytest.raises(InvalidInput, match=r"instruction='Find cities'.*cannot be told"):
        reranker.score(RerankQuery("q", instruction="Find cities"), [RerankPassage("a")])


def test_a_passage_without_a_letter_or_a_digit_answers_nothing(reranker):
    texts = ("a cat", "", "  \n", "...", "?!", "🐕")
    said, *nothing = reranker.score(QUERY, [RerankPassage(text) for text in texts])
    assert max(nothing) < 1e-6 < said


def test_without_a_calibration_scores_are_the_sigmoid_of_the_logits(tmp_path):
    # A column of logits is as good as a row.
    reranker = OnnxReranker(write_overlap_reranker(tmp_path, shape=(-1, 1)))
    scores = reranker.score(QUERY, [RerankPassage("red"), RerankPassage("red dog")])
    assert scores == pytest.approx(1 / (1 + np.exp([-1, -2])))
    assert not reranker.is_calibrated


def test_a_score_depends_neither_on_its_batch_nor_on_the_order(reranker):
    texts = [f"the red dog {'barks ' * n}" for n in range(60)]
    together = reranker.score(QUERY, [RerankPassage(text) for text in texts])
    shuffled = random.Random(7).sample(range(60), 60)
    again = reranker.score(QUERY, [RerankPassage(texts[place]) for place in shuffled])
    alone = [reranker.score(QUERY, [RerankPassage(text)])[0] for text in texts]
    assert np.abs(together - alone).max() < 1e-4
    assert np.abs(together[shuffled] - again).max() < 1e-4


@pytest.mark.parametrize("question", ["red dog", "", "红色的狗"])
def test_any_text_in_any_script_has_a_score(reranker, question):
    texts = ["", "\ud800", "\0", "红色的狗", "أحمر كلب", "красная собака", "빨간 개", "🐕" * 500]
    assert np.isfinite(logits(reranker, texts, RerankQuery(question))).all()


def test_long_passages_and_many_are_read(reranker):
    # Of a passage of a hundred thousand words the telling window is read.
    assert logits(reranker, ["word " * 100_000 + "the red dog" + " word" * 9]) == [2.0]
    # More passages than one round takes keep their order.
    texts = ["red dog" if n % 3 == 0 else "red" for n in range(2_500)]
    assert logits(reranker, texts) == [2.0 if n % 3 == 0 else 1.0 for n in range(2_500)]


@pytest.mark.slow
def test_ten_thousand_passages_are_scored(reranker):
    scores = reranker.score(QUERY, [RerankPassage(f"turn {n} of the dog") for n in range(10_000)])
    assert (scores.shape, bool(np.isfinite(scores).all())) == ((10_000,), True)


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        ({"out": "Neg (counts)"}, r"overlap: failed the check at loading: .* 'The capital"),
        ({"out": "ReduceMean (counts)", "shape": (1,)}, r"logits of shape \(1,\) for 2 passages"),
        ({"out": "Asin (counts)"}, "not finite"),
    ],
)
def test_a_model_that_ranks_known_pairs_wrongly_is_refused_and_told_why(tmp_path, graph, problem):
    with pytest.raises(ModelError, match=problem):
        OnnxReranker(write_overlap_reranker(tmp_path, **graph))


def test_the_record_comes_back_and_another_calibration_is_another_revision(tmp_path, directory):
    record = read_reranker_record(directory)
    assert (record.name, record.licence, record.calibration) == ("tiny", "Apache-2.0", CARD)
    assert (len(record.revision), sorted(record.files)) == (16, ["model.onnx", "tokenizer.json"])
    assert is_reranker(directory)
    assert not is_reranker(load_bundled().directory)
    assert not is_reranker(tmp_path)
    write_overlap_reranker(tmp_path, RerankerRecord(name="tiny"))
    other = read_reranker_record(tmp_path)
    assert other.revision != record.revision
    assert seal_reranker(other, tmp_path).revision == other.revision


@pytest.mark.parametrize("name", [SMALL_RERANKER, TINY_RERANKER])
def test_a_bundled_model_reads_pairs_of_the_greatest_length(name):
    model = OnnxReranker(bundled_directory(name))
    assert model.record.layout == "ekphory-turn-3"
    long = "which of the lamps is over the green door " * 40
    passage = RerankPassage(long, before=long, after=long, at=MAY)
    (score,) = model.judge(RerankQuery(long, context=(long,)), [passage]).scores
    assert 0 <= score <= 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "embedder"}, "kind and layout are"),
        ({"layout": "ekphory-turn-0"}, "ekphory-turn-0"),
        ({"format": 2}, "format, kind"),
        ({"files": {}}, "no hash of model.onnx, tokenizer.json"),
        ({"calibration": {"method": "isotonic"}}, "unknown method of calibration 'isotonic'"),
        ({"calibration": {"method": "platt"}}, "KeyError: 'slope'"),
        ({"name": None, "files": None}, "AttributeError"),
    ],
)
def test_a_record_that_cannot_be_used_is_refused(tmp_path, change, problem):
    write_overlap_reranker(tmp_path)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=f"not the record of a reranker.*{problem}"):
        OnnxReranker(tmp_path)


TOKENIZER = Tokenizer.from_file(str(load_bundled().directory / TOKENIZER_FILE))
LAYOUT = CrossEncoderLayout(TOKENIZER)
MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def read(query, passage):
    """The tokens as the model reads them, with a bar where the type id changes."""
    (pair,) = LAYOUT.pairs(query, [passage])
    tokens = [TOKENIZER.id_to_token(each) for each in pair.ids]
    border = pair.type_ids.index(1)
    assert pair.type_ids == [0] * border + [1] * (len(pair.ids) - border)
    return " ".join([*tokens[:border], "|", *tokens[border:]])


def test_a_turn_is_read_with_its_date_and_neighbours():
    # A turn is read with its date and neighbours and the dialogue before the question.
    query = RerankQuery("where to?", context=("Ann: I ran", "Bob: great"))
    passage = RerankPassage("Ann: to lisbon", before="Bob: where", after="Bob: nice", at=MAY)
    assert read(query, passage) == (
        "[CLS] ann : i ran / bob : great / where to ? [SEP] | ann : to lisbon ( 8 may 202 ##3 )"
        " [SEP] bob : where [SEP] bob : nice [SEP]"
    )
    # A marker in a stored text is text.
    marked = read(RerankQuery("q"), RerankPassage("a [SEP] b"))
    assert marked == "[CLS] q [SEP] | a [ sep ] b [SEP]"


def test_a_neighbour_that_is_missing_leaves_no_part_but_before_another():
    for around, tail in (((), ""), (("b", None), " b [SEP]"), ((None, "c"), " [SEP] c [SEP]")):
        found = read(RerankQuery("q"), RerankPassage("a", *around))
        assert found == f"[CLS] q [SEP] | a [SEP]{tail}"


def test_of_what_is_long_the_telling_part_is_read():
    # Of a long dialogue its end is read and the question whole.
    query = RerankQuery("who is it ?", context=("one " * 100, "two " * 50))
    asked = read(query, RerankPassage("a")).split(" [SEP] |")[0].split()[1:]
    assert asked == ["one"] * 8 + ["/"] + ["two"] * 50 + ["/", "who", "is", "it", "?"]
    # Of a long question the beginning is read and no dialogue.
    query = RerankQuery("why " + "so " * 100, context=("one",))
    asked = read(query, RerankPassage("a")).split(" [SEP] |")[0].split()[1:]
    assert asked == ["why"] + ["so"] * 63
    # Of a long passage the window with the questions words is read and the date kept.
    passage = RerankPassage("well " * 300 + "the red dog ran " + "and " * 300, at=MAY)
    target = read(RerankQuery("red dog?"), passage).split("| ")[1].split()
    assert len(target) == MOST_TARGET_TOKENS + 1
    assert target[-8:] == ["and", "(", "8", "may", "202", "##3", ")", "[SEP]"]
    assert target[58:64] == ["well", "the", "red", "dog", "ran", "and"]
    # Of the turn before the end is read and of the turn after the beginning.
    passage = RerankPassage("a", before="one " * 50 + "two", after="three " + "four " * 50)
    parts = read(RerankQuery("q"), passage).split(" [SEP]")
    assert parts[2].split() == ["one"] * 23 + ["two"]
    assert parts[3].split() == ["three"] + ["four"] * 15


def test_a_model_of_an_earlier_layout_reads_shorter_neighbours(tmp_path):
    write_overlap_reranker(tmp_path, RerankerRecord(name="tiny", layout="ekphory-turn-2"))
    passage = RerankPassage("a", before="one " * 50, after="two " * 50)
    earlier = CrossEncoderLayout(TOKENIZER, name=read_reranker_record(tmp_path).layout)
    (pair,) = earlier.pairs(RerankQuery("q"), [passage])
    assert (pair.ids.count(2028), pair.ids.count(2048)) == (12, 12)


REPEATED = st.builds(lambda text, n: text * n, st.text(max_size=9), st.integers(0, 99))
TEXT = st.text(max_size=300) | REPEATED


@given(TEXT, st.lists(TEXT, max_size=3), TEXT, st.none() | TEXT, st.none() | TEXT)
def test_whatever_is_read_keeps_its_bounds_and_its_marks(asked, context, text, before, after):
    query = RerankQuery(asked, context=tuple(context))
    (pair,) = LAYOUT.pairs(query, [RerankPassage(text, before, after, at=MAY)])
    parts = "".join("." if each == 102 else "x" for each in pair.ids).split(".")
    assert len(pair.ids) == len(pair.type_ids) <= MOST_TOKENS
    assert (pair.ids[0], pair.ids[-1], pair.ids.count(101)) == (101, 102, 1)
    assert pair.type_ids == sorted(pair.type_ids)
    neighbours = MOST_NEIGHBOUR_TOKENS["ekphory-turn-3"]
    limits = [MOST_QUERY_TOKENS + 1, MOST_TARGET_TOKENS, *neighbours, 0]
    assert all(len(part) <= most for part, most in zip(parts, limits, strict=False))


def test_the_tokenizer_that_is_given_stays_as_it_is_and_must_know_the_marks():
    # The tokenizer that is given stays as it is.
    given = Tokenizer.from_str(TOKENIZER.to_str())
    given.enable_truncation(3)
    (pair,) = CrossEncoderLayout(given).pairs(RerankQuery("a b c d"), [RerankPassage("e")])
    assert len(pair.ids) == 8
    assert (given.truncation["max_length"], given.encode_special_tokens) == (3, False)
    # A tokenizer without the marks is refused.
    with pytest.raises(ModelError, match=r"knows no \[CLS\]"):
        CrossEncoderLayout(Tokenizer(models.BPE()))
