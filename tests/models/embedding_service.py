"""A local service that speaks `/v1/embeddings`."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.services.wire import Reply, Request, WireService, running_service, says


def embeddings(request: Request) -> Reply:
    """Return each text (its length, 1, 0), the last text first."""
    if request.path != "/v1/embeddings":
        return Reply(404)
    rows = [
        {"object": "embedding", "index": index, "embedding": [float(len(text)), 1.0, 0.0]}
        for index, text in enumerate(request.body["input"])
    ]
    return says({"object": "list", "model": request.body["model"], "data": rows[::-1]})


@contextmanager
def running_embeddings() -> Iterator[WireService]:
    with running_service(embeddings) as service:
        yield service
