import numpy as np
import pytest

from ekphory.testing import HashEmbedder
from ekphory_lab.bench.generate import Corpus, PooledEmbedder, VectorPool, passage

CORPUS = Corpus(seed=7, scopes=2)


def passages(start, stop):
    return [passage(record) for record in CORPUS.records(start, stop)]


def expected(start, stop):
    return HashEmbedder().encode(passages(start, stop))


@pytest.fixture
def opened(tmp_path):
    def open_pool(*, corpus=CORPUS, extended=(), **embedder):
        pool = VectorPool.at(tmp_path, embedder=HashEmbedder(**embedder), corpus=corpus)
        if extended:
            pool.extend(passages(*extended), embedder=HashEmbedder())
        return pool

    return open_pool


@pytest.fixture
def pool(opened):
    return opened(extended=(0, 60))


def test_the_pool_gives_the_vectors_of_a_stretch_and_goes_on_where_it_ended(pool, opened):
    assert len(pool) == 60
    np.testing.assert_array_equal(pool.rows(10, 20), expected(10, 20))
    # A pool that is opened again goes on where it ended.
    np.testing.assert_array_equal(opened(extended=(60, 70)).rows(55, 70), expected(55, 70))
    # A row cut short by an interruption is written again.
    with (pool.directory / "vectors.f32").open("ab") as stream:
        stream.write(b"half a row")
    np.testing.assert_array_equal(opened(extended=(70, 71)).rows(70, 71), expected(70, 71))


def test_another_embedder_or_seed_has_a_pool_of_its_own_another_number_of_scopes_not(pool, opened):
    assert (len(opened(dimension=64)), len(opened(corpus=Corpus(seed=8)))) == (0, 0)
    assert len(opened(corpus=Corpus(seed=7, scopes=50))) == 60


def test_beyond_the_pool_vectors_are_reused_with_noise(pool):
    original, reused = pool.rows(0, 1)[0], pool.rows(60, 61)[0]
    assert np.linalg.norm(reused) == pytest.approx(1, abs=1e-5)
    assert 0.9 < float(original @ reused) < 0.99
    np.testing.assert_array_equal(reused, pool.rows(60, 61)[0])


def test_announced_passages_need_no_model_and_all_else_is_the_models(pool):
    def no_model():
        raise AssertionError("the model was loaded")

    records = list(CORPUS.records(5, 8))
    texts = passages(5, 8)
    without, embedder = PooledEmbedder(pool, no_model), PooledEmbedder(pool, HashEmbedder)
    without.announce(records, start=5)
    prefix = f"{records[0]['producer']}: "
    assert without.windows(str(records[0]["text"]), prefix=prefix) == [texts[0]]
    np.testing.assert_array_equal(without.encode(texts), expected(5, 8))
    # Other passages and queries are the model's.
    embedder.announce(records[:1], start=5)
    given = embedder.encode(["something else", texts[0]])
    np.testing.assert_array_equal(given[0], HashEmbedder().encode(["something else"])[0])
    np.testing.assert_array_equal(given[1], expected(5, 6)[0])
    asked = embedder.encode_query(["what?"])
    np.testing.assert_array_equal(asked, HashEmbedder().encode_query(["what?"]))
