"""Measuring workers in this process, where memory is not measured."""

import json

from ekphory_lab.bench.ekphory_worker import EkphoryStore
from ekphory_lab.bench.lancedb_worker import LanceDbStore
from ekphory_lab.bench.measure import BenchError
from ekphory_lab.bench.model_worker import ModelWorker
from ekphory_lab.bench.worker import answer

WORKERS = {"model": ModelWorker, "ekphory": EkphoryStore, "lancedb": LanceDbStore}


class LocalWorker:
    """Runs operations here; what goes in and out is what JSON keeps of it."""

    def __init__(self, worker):
        self._worker = worker

    def call(self, operation, payload):
        asked = json.loads(json.dumps({"operation": operation, "payload": payload}))
        given = json.loads(json.dumps(answer(self._worker, asked)))
        if "error" in given:
            raise BenchError(f"{operation}: {given['error']}")
        return given

    def end(self):
        pass


def in_process(name, setup):
    return LocalWorker(WORKERS[name](setup))
