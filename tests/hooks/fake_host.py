"""Fake agent tools: each runs the hooks that are installed in its configuration as it documents."""

import json
import subprocess
import time
from pathlib import Path

from ekphory.hooks.hosts import HOSTS

PLUGIN_HOST = Path(__file__).parent / "plugin_host.mjs"


class FakeHost:
    """A tool that has its hooks installed in a home by `ekphory hook install`."""

    def __init__(self, name, home):
        self.host, self.home = HOSTS[name], home
        self.config = home.path / name
        self._run(home.command("hook", "install", name, "--config-dir", str(self.config)))

    @property
    def file(self):
        return self.config / self.host.file

    def fire(self, event, payload):
        """Run the command of an event as the configuration has it, and parse what it prints."""
        (entry,) = json.loads(self.file.read_text())["hooks"][self.host.events[event]]
        hook = entry["hooks"][0] if "hooks" in entry else entry
        is_shell = "args" not in hook
        command = hook["command"] if is_shell else [hook["command"], *hook["args"]]
        printed = self._run(command, payload, shell=is_shell)
        return json.loads(printed) if printed else None

    def wait_until_told(self, payload):
        """Ask until something is told: at first the models are still being loaded."""
        end = time.monotonic() + 240.0
        while not self.fire("prompt", payload):
            assert time.monotonic() < end
            time.sleep(0.5)

    def play(self, steps, messages):
        """Let the plugin answer what the tool calls; return what each call left and returned."""
        beside = self.config / "package.json"  # the tool's own runtime needs none to see a module
        beside.write_text('{"type": "module"}')
        given = {
            "host": self.host.name, "plugin": str(self.file), "folder": str(self.home.folder),
            "messages": messages, "steps": steps,
        }  # fmt: skip
        return json.loads(self._run(["node", str(PLUGIN_HOST)], given))

    def _run(self, command, payload=None, *, shell=False):
        done = subprocess.run(
            command,
            shell=shell,
            input=json.dumps(payload),
            env=self.home.environment,
            cwd=self.home.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
