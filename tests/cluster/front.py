"""A cluster without Ray: the front, and replicas in this process."""

from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.cluster.conftest import NEEDED
from tests.server.running import RunningServer, running_application

from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database
from ekphory.cluster.front import Front
from ekphory.cluster.served_shards import name_part, open_part
from ekphory.cluster.shards import make_shards
from ekphory.errors import StoreError
from ekphory.server.options import ServerOptions
from ekphory.service.handles import ServiceModels
from ekphory.testing import HashEmbedder


class Replicas:
    """Replicas in this process; `machines` of them, of which the next request meets another."""

    def __init__(self, shards, machines=1, models=None):
        self._models = models or ServiceModels(embedder=HashEmbedder())
        self._shards = shards
        self._machines = [{} for _ in range(machines)]
        self._turn = 0

    def ask(self, shard, request):
        self._turn += 1
        opened = self._machines[self._turn % len(self._machines)]
        if shard not in opened:
            name = name_part(self._shards, shard)
            opened[shard] = open_part(self._shards, name, self._models)
        return opened[shard].answer(request)

    def close(self):
        for opened in self._machines:
            for served in opened.values():
                served.close()


@contextmanager
def running_cluster(root, models=None, **settings):
    """Serve a new store of three shards until the block ends."""
    for package in ("obstore", "lance"):
        pytest.importorskip(package, reason=NEEDED)
    shards = make_shards(str(root), HashEmbedder(), count=3)
    with closing(Replicas(shards, models=models)) as replicas:
        front = Front(shards, replicas.ask, errors=(StoreError,))
        catalog = Path(root) / "keys.sqlite3"
        options = ServerOptions(store=shards.root, catalog=catalog, **settings)
        with (
            closing(Database(catalog)) as database,
            running_application(front.application(options), options) as client,
        ):
            url, keys = str(client.base_url), AccessKeys(database)
            yield RunningServer(url, str(root), None, client, keys)
