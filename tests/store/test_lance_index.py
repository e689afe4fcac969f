"""Every kind of vector index that LanceDB has can be chosen, with its parameters."""

import lancedb
import numpy as np
import pyarrow as pa
import pytest

from ekphory.errors import InvalidInput
from ekphory.store.lance_index import IndexSettings, VectorIndex

ROWS, DIMENSION = 3_000, 32
SLOW = pytest.mark.slow  # a graph of neighbours is built


@pytest.fixture(scope="module")
def vectors():
    drawn = np.random.default_rng(7).normal(size=(ROWS, DIMENSION)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.fixture
def table(vectors, tmp_path):
    names = ("id", "fingerprint", "org", "project", "agent", "user", "session", "pool")
    columns = {name: [f"{name}{row}" for row in range(ROWS)] for name in names}
    arrow = pa.table({"key": np.arange(ROWS), **columns, "vector": list(vectors)})
    vector = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    arrow = arrow.set_column(arrow.schema.get_field_index("vector"), "vector", vector)
    return lancedb.connect(tmp_path).create_table("memories", arrow)


@pytest.fixture
def chosen(table, monkeypatch):
    """The index of a table that the environment asks for, built."""

    def build(text):
        monkeypatch.setenv("EKPHORY_VECTOR_INDEX", text)
        index = VectorIndex(table)
        index.build()
        return index

    return build


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ivf_rq num_partitions=4", "IVF_RQ"),
        ("IVF_PQ num_partitions=4 num_sub_vectors=16 nprobes=4", "IVF_PQ"),
        ("ivf_sq num_partitions=4", "IVF_SQ"),
        ("ivf_flat num_partitions=4 nprobes=4", "IVF_FLAT"),
        *(
            pytest.param(f"{kind} num_partitions=2 {more} ef=300", kind.upper(), marks=SLOW)
            for kind, more in (
                ("ivf_hnsw_pq", "num_sub_vectors=16 m=12"),
                ("ivf_hnsw_sq", "ef_construction=100"),
                ("ivf_hnsw_flat", ""),
            )
        ),
    ],
)
def test_every_kind_is_built_and_finds_the_nearest(chosen, table, vectors, text, told):
    index = chosen(text)
    (built,) = [each for each in table.list_indices() if each.columns == ["vector"]]
    assert table.index_stats(built.name).index_type == told
    hits = 0
    for query in vectors[::300]:
        found = index.nearest(query, None, limit=200)["_rowid"].to_numpy()
        hits += len(np.intersect1d(found, np.argsort(-(vectors @ query))[:10]))
    assert hits >= 60  # of 100; at random some seven
    assert not index.is_outgrown(ROWS)


def test_an_index_of_other_settings_is_to_be_built_anew(chosen, table):
    chosen("ivf_pq num_partitions=4 num_sub_vectors=16")
    assert not VectorIndex(table).is_outgrown(ROWS)
    assert VectorIndex(table, IndexSettings()).is_outgrown(ROWS)
    index = chosen("ivf_pq num_partitions=4 num_sub_vectors=8")
    assert index.covered_rows() == ROWS
    (name,) = [each.name for each in table.list_indices() if each.columns == ["vector"]]
    assert name == "vector_ivf_pq_num_partitions4_num_sub_vectors8_4"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("annoy", "Known are ivf_rq, ivf_pq"),
        ("ivf_flat num_sub_vectors=16", "must be a kind of vector index, or a parameter of it"),
        ("ivf_pq num_partitions=many", "number. Write num_partitions=8, or another number above 0"),
        ("ivf_pq num_sub_vectors=7", "of 32 numbers. Take one of 1, 2, 4, 8, 16, 32"),
        ("ivf_pq num_bits=5", "Take one of 4, 8, 16"),
    ],
)
def test_what_lancedb_does_not_have_is_refused(table, monkeypatch, text, problem):
    monkeypatch.setenv("EKPHORY_VECTOR_INDEX", text)
    with pytest.raises(InvalidInput, match=problem):
        VectorIndex(table)
