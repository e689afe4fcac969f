"""Tries to hold the writer's lease in each directory, one a go, and reports what came of it."""

import sys

from process import report, wait_for_go

from ekphory.errors import StoreLocked
from ekphory.store.writer import WriterLease


def main():
    for path in sys.argv[1:]:
        wait_for_go()
        try:
            WriterLease(path).hold()
        except StoreLocked:
            report(outcome="refused")
        else:
            report(outcome="held")


main()
