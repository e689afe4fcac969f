"""Calls every kind of verb, and prints how many files of the package each of them enters."""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import ekphory.memory

PACKAGE = str(Path(ekphory.memory.__file__).parent)


def count_files(call: Callable[[], object]) -> int:
    entered = set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
    return len(entered)


with ekphory.memory.Memory(sys.argv[1], user="u") as memory:
    memory.add("warm up")
    memory.search("warm")
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: memory.add("Deployed v2 to staging"),
        "search": lambda: memory.search("what was deployed?"),
        "accurate": lambda: memory.search("what was deployed?", preset="accurate"),
        "agent": lambda: memory.search("who is the boss of Ada's sister?", agent_mode=True),
    }
    print(json.dumps({name: count_files(call) for name, call in calls.items()}))
