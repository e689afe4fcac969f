"""A home in which commands start a resident process."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from ekphory import resident


class Home:
    """A user's home, the commands run in it, and the resident process that they start."""

    def __init__(self, path):
        self.path = path
        self.store = path / "store"
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("EKPHORY_")
        }
        # A socket's path is short, so pytest's own folders would be too long for it.
        self.environment.update(HOME=str(path), XDG_DATA_HOME=str(path / "data"))

    @property
    def folder(self):
        return self.path / "data" / "ekphory" / "daemon"

    def run(self, *arguments, rights=None, **environment):
        """Run a command; `rights` are what else its process has, such as another umask."""
        return subprocess.run(
            [sys.executable, "-m", "ekphory", *arguments],
            env={**self.environment, **environment},
            cwd=self.path,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
            **(rights or {}),
        )

    def add(self, text, **environment):
        return self.run("add", text, "--store", str(self.store), **environment)

    def search(self, query, **environment):
        done = self.run("search", query, "--store", str(self.store), "--json", **environment)
        return [hit["memory"]["text"] for hit in json.loads(done.stdout)["hits"]]

    def status(self):
        try:
            return resident.ask({"status": True}, seconds=10)
        except resident.NoResident:
            return {"running": False}

    def wait_until_running(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            status = self.status()
            if status["running"]:
                return status
            time.sleep(0.1)
        raise AssertionError("no resident process came")

    def stop(self):
        try:
            resident.ask({"stop": True}, seconds=10)
        except resident.NoResident:
            return


@contextmanager
def temporary_home(make=Home):
    """Make a home that is this process's too; it goes at the end, and its resident process."""
    path = Path(tempfile.mkdtemp(prefix="ek"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOME", str(path))
        environment.setenv("XDG_DATA_HOME", str(path / "data"))
        made = make(path)
        yield made
        made.stop()
    shutil.rmtree(path, ignore_errors=True)
