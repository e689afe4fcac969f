import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.models.tiny_components import tiny_components

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.late_bound import (
    COMPONENTS_FILE,
    NO_AGE,
    NO_TYPE,
    EmbedderComponents,
    LateBoundParts,
    Linear,
    PassageReading,
    PredictedTraits,
    age_buckets,
    age_buckets_at,
    average_traits,
    find_late_bound,
    late_bound_scores,
    normalised,
    read_components,
    read_passages,
    type_codes,
    write_components,
)
from ekphory.testing import HashEmbedder

DAY = 86_400_000_000
MEMORIES, DIMENSION = 400, 48


@pytest.fixture
def random():
    return np.random.default_rng(3)


@pytest.fixture
def parts(random):
    shapes = ((10, DIMENSION), (4, DIMENSION))
    return LateBoundParts(*(random.normal(0, 1, shape).astype(np.float32) for shape in shapes))


@pytest.fixture
def content(random):
    """Content vectors of lengths from 0.1 to 10, so that no part of the formula is negligible."""
    lengths = np.logspace(-1, 1, MEMORIES)[:, None]
    directions = normalised(random.normal(0, 1, (MEMORIES, DIMENSION)).astype(np.float32))
    return (directions * lengths).astype(np.float32)


def reembedded(parts, content, buckets, types):
    """What a model that adds age and type before the normalisation gives, in double precision."""
    rows = content.astype(np.float64) + parts.age[buckets] + parts.type[types]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("days", "bucket"),
    [
        (-5, 0), (0, 0), (1, 0), (1.01, 1), (3, 1), (4, 2), (7, 2), (8, 3), (14, 3), (15, 4),
        (30, 4), (31, 5), (60, 5), (61, 6), (90, 6), (91, 7), (180, 7), (181, 8), (365, 8),
        (365.5, 9), (10_000, 9), (float("inf"), 9),
    ],
)  # fmt: skip
def test_the_limits_of_the_buckets_are_inclusive(days, bucket):
    assert age_buckets([days]).tolist() == [bucket]


def test_moments_are_compared_to_the_microsecond_and_types_numbered():
    # Moments are compared to the microsecond.
    now = 20_000 * DAY
    moments = np.array([now + 1, now - DAY, now - DAY - 1, now - 365 * DAY, now - 365 * DAY - 1])

    assert age_buckets_at(moments, now).tolist() == [0, 0, 1, 8, 9]
    # Types are numbered as the model was trained.
    names = ["unknown", "episodic", "procedural", "semantic", "episodic"]

    assert type_codes(names).tolist() == [3, 0, 2, 1, 0]
    assert type_codes(np.array([], np.str_)).tolist() == []


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: age_buckets([1.0, float("nan")]), "days_ago"),
        (lambda: type_codes(["semantic", "seasonal"]), "memory_type='seasonal'"),
        (lambda: LateBoundParts(np.zeros((10, 8)), np.zeros((3, 8))), r"type=\(3, 8\)"),
    ],
)
def test_what_is_no_age_no_type_or_no_such_vectors_is_refused(make, problem):
    with pytest.raises(InvalidInput, match=problem):
        make()


def test_a_memory_without_a_vector_scores_nothing():
    parts = LateBoundParts(np.ones((10, 2), np.float32), np.ones((4, 2), np.float32))
    content, code = np.zeros((1, 2), np.float32), np.array([1])
    offsets = parts.offsets(np.array([0, 1], np.float32))
    one = parts.lengths_at(content, buckets=code, types=code)
    for lengths in (parts.lengths(content, types=code)[:, 1], one):
        scores = late_bound_scores(np.zeros(1), offsets, lengths, buckets=code, types=code)
        assert scores.tolist() == [0]


def test_a_small_example_by_hand():
    parts = LateBoundParts(np.zeros((10, 2), np.float32), np.zeros((4, 2), np.float32))
    parts.age[2] = [0, 1]
    parts.type[1] = [0, 3]
    content = np.array([[3, 0]], np.float32)

    buckets, types = np.array([2]), np.array([1])
    lengths = parts.lengths(content, types=types)[:, 2]
    query = np.array([0, 1], np.float32)
    offsets = parts.offsets(query)
    scores = late_bound_scores(content @ query, offsets, lengths, buckets=buckets, types=types)

    assert lengths == pytest.approx([5])  # z = (3, 4)
    assert scores == pytest.approx([0.8])


def test_every_moment_gives_the_scores_of_embedding_everything_anew(random, parts, content):
    types = random.integers(0, 4, MEMORIES)
    at = np.arange(MEMORIES) * (2 * DAY)
    query = normalised(random.normal(0, 1, (1, DIMENSION)).astype(np.float32))[0]
    lengths, offsets = parts.lengths(content, types=types), parts.offsets(query)
    for now in np.linspace(0, 1200 * DAY, 20).astype(np.int64):
        buckets = age_buckets_at(at, int(now))
        now_long = lengths[np.arange(MEMORIES), buckets]
        scores = late_bound_scores(content @ query, offsets, now_long, buckets=buckets, types=types)

        expected = reembedded(parts, content, buckets, types) @ query

        assert np.abs(scores - expected).max() <= 1e-5
        assert np.array_equal(np.argsort(-scores), np.argsort(-expected))


def test_one_age_gives_one_of_the_ten_lengths_and_what_embedding_anew_gives(random, parts, content):
    buckets, types = random.integers(0, 10, MEMORIES), random.integers(0, 4, MEMORIES)

    one = parts.lengths_at(content, buckets=buckets, types=types)
    vectors = parts.bound(content, buckets=buckets, types=types)

    ten = parts.lengths(content, types=types)
    assert one == pytest.approx(ten[np.arange(MEMORIES), buckets], rel=1e-5)
    assert np.abs(vectors - reembedded(parts, content, buckets, types)).max() <= 1e-6


def test_without_age_and_type_the_content_is_left(parts, content):
    # Without age and type the content is left.
    ages, types = np.full(MEMORIES, NO_AGE), np.full(MEMORIES, NO_TYPE)
    vectors = parts.bound(content, buckets=ages, types=types)

    assert np.array_equal(vectors, normalised(content))
    # A memory that its age cancels has a finite score.
    lengths = parts.lengths(-(parts.age[:1] + parts.type[:1]), types=np.zeros(1, np.int64))

    assert np.isfinite(lengths).all()
    assert (lengths > 0).all()


@pytest.fixture
def path(tmp_path):
    write_components(tiny_components(), tmp_path)
    return tmp_path / COMPONENTS_FILE


def test_components_come_back_as_they_were_written_by_the_trainers_names(path):
    found, written = read_components(path.parent), tiny_components()

    assert np.array_equal(found.age, written.age)
    assert np.array_equal(found.importance[1].bias, written.importance[1].bias)
    assert np.array_equal(found.memory_type.weight, written.memory_type.weight)
    layers = ("importance.0", "importance.2", "memory_type", "projection")
    pairs = [f"{name}.{part}" for name in layers for part in ("weight", "bias")]
    assert sorted(load_file(path)) == sorted(["age.weight", "type.weight", *pairs])


def test_a_model_without_heads_can_be_written(tmp_path):
    assert read_components(tmp_path) is None
    whole = tiny_components()
    write_components(EmbedderComponents(whole.age, whole.type, whole.projection), tmp_path)

    found = read_components(tmp_path)

    assert found.importance is None
    assert found.type_logits_of(np.ones((1, 32), np.float32)) is None


@pytest.mark.parametrize(
    ("name", "shape", "problem"),
    [
        ("age.weight", None, "age.weight is missing"),
        ("type.weight", None, "type.weight is nothing"),
        ("projection.bias", None, "projection.bias is nothing"),
        ("type.weight", (3, 32), r"type.weight is \(3, 32\), not \(4, 32\)"),
    ],
)
def test_a_tensor_that_is_missing_or_of_another_shape_is_named(path, name, shape, problem):
    tensors = load_file(path)
    del tensors[name]
    if shape is not None:
        tensors[name] = np.zeros(shape, np.float32)
    save_file(tensors, path)

    with pytest.raises(ModelError, match=problem):
        read_components(path.parent)


def test_a_file_that_is_cut_short_is_refused(path):
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelError, match="cannot be read as safetensors"):
        read_components(path.parent)


def test_importance_and_projection_are_those_of_the_formula():
    # The importance is a sigmoid over two layers.
    one, none = np.eye(2, dtype=np.float32), np.zeros((10, 2), np.float32)
    outer = Linear(np.array([[2, 5]], np.float32), np.array([-1], np.float32))
    head = (Linear(one, np.array([0, -1], np.float32)), outer)
    components = EmbedderComponents(none, none[:4], Linear(one, none[0]), head)

    # ReLU gives (0.5, 0), so the logit is 2 * 0.5 - 1
    assert components.importance_of(np.array([[0.5, 0.5]], np.float32)) == pytest.approx([0.5])
    # Age and type are projected without the bias.
    components = tiny_components()

    parts = components.late_bound()

    with_age = components.content(components.age[:1])
    assert np.abs(parts.age[:1] + components.projection.bias - with_age).max() <= 1e-6


def test_any_model_can_read_passages_whose_traits_are_the_mean():
    # Any model can read passages.
    embedder = HashEmbedder()

    reading = read_passages(embedder, ["tea", "coffee"])

    assert np.array_equal(reading.content, embedder.encode(["tea", "coffee"]))
    assert (reading.importance, reading.type_logits) == (None, None)
    assert find_late_bound(embedder) is None
    # A memorys traits are the mean over its windows.
    content = np.zeros((3, 2), np.float32)
    logits = np.array([[0, 3, 0, 0], [5, 0, 0, 0], [0, 1, 0, 2]], np.float32)
    reading = PassageReading(content, np.array([0.2, 0.6, 0.9], np.float32), logits)

    first, second = average_traits(reading, [2, 1])
    assert first == PredictedTraits(pytest.approx(0.4), "episodic")
    assert second == PredictedTraits(pytest.approx(0.9), "unknown")
    # A model without heads predicts nothing.
    assert average_traits(PassageReading(content), [1, 2]) == [PredictedTraits(None, None)] * 2
    assert average_traits(PassageReading(content[:0]), []) == []
