"""What a store of shards costs, measured on an object storage that counts."""

import pytest

from ekphory.errors import InvalidInput
from ekphory_lab.bench.cluster import (
    cluster_findings,
    cluster_table,
    object_storage,
    run_cluster_bench,
)
from ekphory_lab.bench.options import ClusterOptions

NEEDED = "needs the extras cluster and cluster-test; `make test-cluster` installs them"


@pytest.mark.parametrize(
    ("given", "message"),
    [({"shards": 0}, "shards=0: measures nothing"), ({"n": 10}, "n=10: is little for 20 projects")],
)
def test_options_that_measure_nothing_are_refused(given, message):
    with pytest.raises(InvalidInput, match=message):
        ClusterOptions(**given).check()


@pytest.mark.long
def test_the_object_storage_counts_requests_and_bytes():
    pytest.importorskip("moto.server", reason=NEEDED)
    obstore = pytest.importorskip("obstore", reason=NEEDED)
    import os

    with object_storage(delay=0.0) as traffic:
        bucket = obstore.store.from_url("s3://bench")
        before = traffic.copy()
        obstore.put(bucket, "some", b"12345")
        assert obstore.get(bucket, "some").bytes() == b"12345"
        assert traffic - before == {"requests": 2, "sent": 5, "received": 5}
    assert "AWS_ENDPOINT" not in os.environ


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_small_run_tells_what_each_call_costs():
    pytest.importorskip("moto.server", reason=NEEDED)
    pytest.importorskip("lance", reason=NEEDED)
    options = ClusterOptions(
        n=200, projects=2, shards=2, queries=4, commits=2, delay=1.0,
        embedder="ekphory.testing:HashEmbedder",
    )  # fmt: skip
    report = run_cluster_bench(options, on_progress=lambda _: None)
    assert report.first_commit.requests > report.commit.requests >= 5
    assert report.cold.requests > report.warm.requests
    assert report.commit.sent > 0 < report.cold.received
    assert report.cpu_write["all"] > report.cpu_write["rest"] > 0
    assert cluster_table(report).rows[0][0] == "first commit"
    assert "extrapolated from 200" in cluster_findings(report)[0]
