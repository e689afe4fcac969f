"""Moves a store to another number of shards, killed again and again before the next of its steps.

Each attempt is a fork of this process, which has imported all and used nothing of it yet.
"""

import os
import signal
import sys
import threading
import traceback

from process import report, wait_for_go

from ekphory.cluster.moving import reshard
from ekphory.testing import HashEmbedder

KILLS = [
    *(("seal", 1), ("fence_table", 2), ("seal", 3), ("write_manifest", 1), ("make", 2)),
    *(("append", 1), ("append", 2), ("append", 3), ("_add", 4), ("decide", 1), ("check", 2)),
    *(("decide", 4), ("check", 4), ("write_manifest", 1), ("delete_folder", 1)),
    ("delete_folder", 2),
]
"""Before which call of which function; what was done by earlier attempts is not done again."""


def main():
    root, shards = sys.argv[1], int(sys.argv[2])
    wait_for_go()
    for name, number in (*KILLS, ("", 1)):
        process = os.fork()
        if process == 0:
            attempt(root, shards, name, number)
        _, status = os.waitpid(process, 0)
        report(step=name, number=number, code=os.waitstatus_to_exitcode(status))


def attempt(root, shards, name, number):
    done = 0

    def watch(frame, event, _):
        nonlocal done
        module = frame.f_globals.get("__name__", "")
        if event == "call" and frame.f_code.co_name == name and module.startswith("ekphory."):
            done += 1
            if done == number:
                os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        reshard(root, HashEmbedder(), count=shards)
    except BaseException:  # noqa: BLE001  told to the parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


main()
