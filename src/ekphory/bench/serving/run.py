"""The whole run: the vectors, and each layout filled and measured."""

from __future__ import annotations

import time
from dataclasses import replace

from ekphory.bench.child import Launcher, in_child
from ekphory.bench.layout import PRODUCT, Told
from ekphory.bench.machine import machine, versions
from ekphory.bench.preparing import filled_pool, model_setup, placed, plain, workspace
from ekphory.bench.serving.measuring import Served
from ekphory.bench.serving.options import ServingOptions
from ekphory.bench.serving.results import ServedLayout, ServingReport
from ekphory.bench.setup import Setup
from ekphory.bench.vectors import BATCH

_ORG = "bench"
_CHUNK = 10 * BATCH
_PACKAGES = ("ekphory", "fastapi", "pydantic", "starlette", "uvicorn")


def run_serving_bench(
    options: ServingOptions, *, on_progress: Told, launch: Launcher = in_child
) -> ServingReport:
    """Measure everything that the options ask for.

    Args:
        options: What to measure.
        on_progress: Told in words what is being done.
        launch: How measuring processes are started.

    Raises:
        InvalidInput: The directory to keep is in use.
        BenchError: A measuring process or the server failed.
    """
    began, described = time.perf_counter(), machine()
    with workspace(options.keep) as directory:
        setup = replace(model_setup(options.filling(), directory), org=_ORG)
        model = launch("model", setup)
        setup = replace(setup, pool=filled_pool(model, options.filling(), on_progress))
        model.end()
        layouts = []
        for scopes in options.scopes:
            store = placed(setup, f"{scopes}-scopes", scopes=scopes)
            _fill(options, store, launch=launch, on_progress=on_progress)
            layouts.append(_measured(options, store, launch=launch, on_progress=on_progress))
    return ServingReport(
        machine=described,
        versions=versions(_PACKAGES),
        options=plain(options),
        layouts=tuple(layouts),
        seconds=round(time.perf_counter() - began, 1),
    )


def _fill(options: ServingOptions, setup: Setup, *, launch: Launcher, on_progress: Told) -> None:
    worker = launch(PRODUCT, setup)
    for start in range(0, options.n, _CHUNK):
        stop = min(start + _CHUNK, options.n)
        worker.call("fill", {"start": start, "stop": stop})
        on_progress(f"{setup.scopes} scopes: {stop:,} of {options.n:,} memories written")
    worker.call("index", {"rows": options.n})
    worker.call("close", {})
    worker.end()


def _measured(
    options: ServingOptions, setup: Setup, *, launch: Launcher, on_progress: Told
) -> ServedLayout:
    worker = launch("service", setup)
    try:
        served = Served(options, setup=setup, worker=worker, on_progress=on_progress)
        layout = served.measure()
        worker.call("close", {})
    finally:
        worker.end()
    return layout
