"""Stores of shards in a shared directory, and on an S3 of this machine."""

import os

import pytest

from ekphory.cluster.shards import make_shards, open_memory
from ekphory.scope import Scope
from ekphory.testing import HashEmbedder

BUCKET = "memories"
NEEDED = "needs the extras cluster and cluster-test; `make test-cluster` installs them"


@pytest.fixture(scope="session")
def object_storage():
    """An S3 on this machine; the environment names it."""
    pytest.importorskip("obstore", reason=NEEDED)
    pytest.importorskip("lance", reason=NEEDED)
    moto_server = pytest.importorskip("moto.server", reason=NEEDED)
    import boto3

    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address, port = server.get_host_and_port()
    url = f"http://{address}:{port}"
    named = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": url,
        "AWS_ALLOW_HTTP": "true",
    }
    with pytest.MonkeyPatch.context() as environment:
        for name, value in named.items():
            environment.setenv(name, value)
        boto3.client("s3", endpoint_url=url, region_name="us-east-1").create_bucket(Bucket=BUCKET)
        yield url
    server.stop()


@pytest.fixture(params=["directory", "s3"])
def place(request, tmp_path):
    """Where a store of shards may lie."""
    pytest.importorskip("obstore", reason=NEEDED)
    pytest.importorskip("lance", reason=NEEDED)
    if request.param == "directory":
        return str(tmp_path / "cluster")
    request.getfixturevalue("object_storage")
    return f"s3://{BUCKET}/{tmp_path.name}-{os.getpid()}"


@pytest.fixture
def shards(place):
    """A store of three shards."""
    return make_shards(place, HashEmbedder(), count=3)


@pytest.fixture
def open_scope(shards, close_at_end):
    """Opens a handle of any scope on the store of three shards."""
    return lambda **bound: close_at_end(
        open_memory(shards.root, Scope(**bound), embedder=HashEmbedder())
    )
