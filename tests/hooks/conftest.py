"""Hooks that run as a host runs them, over a store and a state of their own."""

import json

import pytest

from ekphory.hooks.hosts import HOSTS
from ekphory.hooks.running import HookRun, capture_waiting
from ekphory.hooks.state import HookState

from .payloads import end_payload


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "app"
    place.mkdir()
    return place


@pytest.fixture
def state(tmp_path):
    return HookState(tmp_path / "state")


@pytest.fixture
def run(open_memory, state):
    """Runs a hook with a payload; returns what the host is told."""

    def run(event, payload, *, host="claude-code", project=None):
        # Words alone are less sure than the bundled models.
        settings = {"project": project, "least_probability": 0.01}
        hook = HookRun(HOSTS[host], event, state, open_memory, **settings)
        return hook.reply(payload if isinstance(payload, str) else json.dumps(payload))

    return run


@pytest.fixture
def send(run):
    """Runs the hook of a turn's end, in opencode with messages."""

    def send(messages, *, folder, session="s1"):
        sent = end_payload("opencode", folder=folder, session=session, messages=messages)
        run("turn-end", sent, host="opencode")

    return send


@pytest.fixture
def capture(state, open_memory):
    """Captures what waits."""
    return lambda: capture_waiting(state, open_memory)
