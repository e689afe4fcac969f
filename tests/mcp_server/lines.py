"""A process that speaks MCP over its pipes, spoken to line by line."""

import json
import subprocess


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


HELLO = request(
    1,
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "test", "version": "1"},
)


class Lines:
    """The process, once it has been greeted."""

    def __init__(self, command, *, environment, folder=None):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=folder,
        )
        self.answer(HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        line = message if isinstance(message, str) else json.dumps(message)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self, message):
        self.send(message)
        return json.loads(self.process.stdout.readline())

    def end(self):
        """Close the pipe, and return the exit code, other standard output, and the log."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def kill(self):
        self.process.kill()
        self.process.communicate()
