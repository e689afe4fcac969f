"""Starting a child process that waits for its signal, and reading what it reports."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


class Child:
    """A Python process that reports one JSON value a line; it starts its work on `go`."""

    def __init__(self, script, *arguments):
        command = [sys.executable, "-W", "error", str(HERE / script), *map(str, arguments)]
        # Unbuffered: what lies in a buffer is lost to `communicate`, which reads the pipe itself.
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def next_report(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def kill(self):
        """Kill it as `kill -9` does, and give all that it reported until then."""
        self.process.kill()
        return self._rest()

    def finished(self, seconds):
        """Wait for its end, which must be a good one, and give what it reported."""
        out, err = self.process.communicate(timeout=seconds)
        ending = (self.process.returncode, err.decode())
        assert ending == (0, ""), ending
        return [json.loads(line) for line in out.splitlines()]

    def end(self):
        """End it, whatever it is doing, and let go of its pipes."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.process.wait()

    def _rest(self):
        out, _ = self.process.communicate()
        return [json.loads(line) for line in out.splitlines() if line.endswith(b"}")]


def wait_for_go():
    if not sys.stdin.readline():
        sys.exit("the parent went away")


def report(**values):
    """Hand one line to the parent; a single write, which a kill cannot cut in two."""
    os.write(1, json.dumps(values).encode() + b"\n")
