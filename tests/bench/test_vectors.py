import numpy as np
import pytest

from ekphory.testing.models import HashEmbedder
from ekphory_lab.bench.generate import Corpus, PooledEmbedder, VectorPool, passage

CORPUS = Corpus(seed=7, scopes=2)


@pytest.fixture
def pool(tmp_path):
    pool = VectorPool.at(tmp_path, embedder=HashEmbedder(), corpus=CORPUS)
    pool.extend([passage(record) for record in CORPUS.records(0, 60)], embedder=HashEmbedder())
    return pool


def expected(start, stop):
    return HashEmbedder().encode([passage(record) for record in CORPUS.records(start, stop)])


def test_the_pool_gives_the_vectors_of_a_stretch(pool):
    assert len(pool) == 60
    np.testing.assert_array_equal(pool.rows(10, 20), expected(10, 20))


def test_a_pool_that_is_opened_again_goes_on_where_it_ended(pool, tmp_path):
    again = VectorPool.at(tmp_path, embedder=HashEmbedder(), corpus=CORPUS)
    again.extend([passage(record) for record in CORPUS.records(60, 70)], embedder=HashEmbedder())
    np.testing.assert_array_equal(again.rows(55, 70), expected(55, 70))


def test_a_row_cut_short_by_an_interruption_is_written_again(pool, tmp_path):
    with (pool.directory / "vectors.f32").open("ab") as stream:
        stream.write(b"half a row")
    again = VectorPool.at(tmp_path, embedder=HashEmbedder(), corpus=CORPUS)
    again.extend([passage(record) for record in CORPUS.records(60, 61)], embedder=HashEmbedder())
    np.testing.assert_array_equal(again.rows(60, 61), expected(60, 61))


def test_another_embedder_or_seed_has_a_pool_of_its_own(pool, tmp_path):
    wider = VectorPool.at(tmp_path, embedder=HashEmbedder(dimension=64), corpus=CORPUS)
    other = VectorPool.at(tmp_path, embedder=HashEmbedder(), corpus=Corpus(seed=8))
    assert (len(wider), len(other)) == (0, 0)


def test_the_number_of_scopes_shares_a_pool(pool, tmp_path):
    shared = VectorPool.at(tmp_path, embedder=HashEmbedder(), corpus=Corpus(seed=7, scopes=50))
    assert len(shared) == 60


def test_beyond_the_pool_vectors_are_reused_with_noise(pool):
    original, reused = pool.rows(0, 1)[0], pool.rows(60, 61)[0]
    assert np.linalg.norm(reused) == pytest.approx(1, abs=1e-5)
    assert 0.9 < float(original @ reused) < 0.99
    np.testing.assert_array_equal(reused, pool.rows(60, 61)[0])


def test_announced_passages_need_no_model(pool):
    def no_model():
        raise AssertionError("the model was loaded")

    embedder = PooledEmbedder(pool, no_model)
    records = list(CORPUS.records(5, 8))
    embedder.announce(records, start=5)
    texts = [passage(record) for record in records]
    assert embedder.windows(str(records[0]["text"]), prefix=f"{records[0]['producer']}: ") == [
        texts[0]
    ]
    np.testing.assert_array_equal(embedder.encode(texts), expected(5, 8))


def test_other_passages_and_queries_are_the_models(pool):
    embedder = PooledEmbedder(pool, HashEmbedder)
    records = list(CORPUS.records(5, 6))
    embedder.announce(records, start=5)
    given = embedder.encode(["something else", passage(records[0])])
    np.testing.assert_array_equal(given[0], HashEmbedder().encode(["something else"])[0])
    np.testing.assert_array_equal(given[1], expected(5, 6)[0])
    asked = embedder.encode_query(["what?"])
    np.testing.assert_array_equal(asked, HashEmbedder().encode_query(["what?"]))
