"""Ray, started or joined: without statistics of usage, and with authentication."""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from ekphory.errors import InvalidInput, MissingExtra, StoreError

_OBJECT_BYTES = 256 * 2**20
"""Memory that a Ray of this machine shares among its processes."""
_ANSWER_SECONDS = 5.0
"""So long a cluster that is joined may take to answer."""


@contextmanager
def running_ray(*, cpus: int | None) -> Iterator[Any]:
    """Join the Ray cluster that `RAY_ADDRESS` names, or start one on this machine.

    Args:
        cpus: How many processors one on this machine uses; None for all.

    Yields:
        The module `ray`.

    Raises:
        MissingExtra: Ray is not installed.
        InvalidInput: `cpus` is none, or the cluster there lets in whoever can reach it.
        StoreError: Ray does not start, or does not answer.
    """
    if cpus is not None and cpus < 1:
        raise InvalidInput("cpus", cpus, "is out of range", "Give 1 or more")
    if find_spec("ray") is None:
        raise MissingExtra("cluster", "ekphory cluster")
    address = os.environ.get("RAY_ADDRESS")
    _prepare_environment(address)
    ray = importlib.import_module("ray")
    started = (
        {}
        if address
        else {
            "num_cpus": cpus,
            "object_store_memory": _OBJECT_BYTES,
            "include_dashboard": False,
        }
    )
    try:
        # `local`: without an address Ray would join whichever one runs here.
        ray.init(address=address or "local", log_to_driver=False, logging_level="error", **started)
    except Exception as error:  # Ray raises no narrower one where it starts too slowly
        remedy = "Check RAY_ADDRESS" if address else "End what keeps this machine busy"
        raise StoreError(f"Ray did not start ({error}). {remedy}, and run it again.") from error
    try:
        # Whatever is set here, the cluster may have been started without authentication.
        if address and _lets_everybody_in(ray.get_runtime_context().gcs_address):
            raise _make_open_error(address)
        yield ray
    finally:
        ray.shutdown()


def _prepare_environment(address: str | None) -> None:
    """Set what Ray reads as it is loaded, and its processes inherit."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if address:
        if os.environ.get("RAY_AUTH_MODE") != "token":
            raise _make_open_error(address)
        return
    # Otherwise Ray listens on all addresses of the machine, whichever one it is told.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _make_open_error(address: str) -> InvalidInput:
    remedy = "Start it with RAY_AUTH_MODE=token, and set that and RAY_AUTH_TOKEN here too"
    return InvalidInput("RAY_ADDRESS", address, "lets in whoever can reach it", remedy)


def _lets_everybody_in(address: str) -> bool:
    """Return whether the head of a cluster answers without a token."""
    grpc = importlib.import_module("grpc")
    messages = importlib.import_module("ray.core.generated.gcs_service_pb2")
    services = importlib.import_module("ray.core.generated.gcs_service_pb2_grpc")
    with grpc.insecure_channel(address) as channel:
        head = services.NodeInfoGcsServiceStub(channel)
        try:
            head.CheckAlive(messages.CheckAliveRequest(), timeout=_ANSWER_SECONDS)
        except grpc.RpcError:
            return False
    return True
