"""The whole run: the model, the peers, the layouts."""

from __future__ import annotations

import time
from dataclasses import replace

from ekphory.bench.child import Launcher, Worker, in_child
from ekphory.bench.generate import Corpus
from ekphory.bench.layout import PRODUCT, SYSTEMS, Layout, Told
from ekphory.bench.machine import machine, versions
from ekphory.bench.options import BenchOptions
from ekphory.bench.peers import PeerRun, measure_peers
from ekphory.bench.preparing import filled_pool, model_setup, placed, plain, workspace
from ekphory.bench.results import BenchReport, EmbeddingSpeed, Latency, SizeReport
from ekphory.bench.setup import Setup
from ekphory.bench.vectors import BATCH


def run_bench(
    options: BenchOptions, *, on_progress: Told, launch: Launcher = in_child
) -> BenchReport:
    """Measure everything that the options ask for.

    Args:
        options: What to measure.
        on_progress: Told in words what is being done.
        launch: How measuring processes are started.

    Raises:
        InvalidInput: The directory to keep is in use.
        BenchError: A measuring process failed.
    """
    began, described = time.perf_counter(), machine()
    with workspace(options.keep) as directory:
        setup = model_setup(options, directory)
        model = launch("model", setup)
        embedding = _measured_model(model, options, on_progress)
        setup = replace(setup, pool=filled_pool(model, options, on_progress))
        peers = _peers(options, setup, model, launch, on_progress)
        model.end()
        sizes = _layouts(options, setup, launch, on_progress)
    return BenchReport(
        machine=described,
        versions={**versions(), **peers.versions},
        options=plain(options),
        embedding=embedding,
        sizes=sizes,
        peers=peers.with_model(embedding),
        skipped=peers.skipped,
        seconds=round(time.perf_counter() - began, 1),
    )


def _measured_model(model: Worker, options: BenchOptions, on_progress: Told) -> EmbeddingSpeed:
    on_progress("measuring the model alone")
    # Memories beyond all stores, and other questions, so that no cache can know them.
    first = 2 * max(options.n, options.peer_n)
    passages = model.call("measure", {"start": first, "stop": first + options.batches * BATCH})
    asked = Corpus(seed=options.seed + 1).queries(options.queries, rows=first)
    queries = model.call("queries", {"texts": [query.text for query in asked]})
    return EmbeddingSpeed(
        embedder=passages["embedder"],
        texts_per_second=round(passages["texts_per_second"], 1),
        query=Latency.of(queries["milliseconds"]),
        peak_bytes=passages["peak_bytes"],
    )


def _peers(
    options: BenchOptions, setup: Setup, model: Worker, launch: Launcher, on_progress: Told
) -> PeerRun:
    if not options.peers:
        return PeerRun(None, {}, {})
    beside = placed(setup, "peers", scopes=options.scopes[0])
    return measure_peers(options, setup=beside, model=model, launch=launch, on_progress=on_progress)


def _layouts(
    options: BenchOptions, setup: Setup, launch: Launcher, on_progress: Told
) -> tuple[SizeReport, ...]:
    reports: list[SizeReport] = []
    for scopes in options.scopes:
        store = placed(setup, f"{scopes}-scopes", scopes=scopes)
        systems = SYSTEMS if options.beside == "lancedb" else (PRODUCT,)
        layout = Layout(
            options, setup=store, systems=systems, launch=launch, on_progress=on_progress
        )
        reports += [layout.measure(size) for size in options.sizes()]
    return tuple(reports)
