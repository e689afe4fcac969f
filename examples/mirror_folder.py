"""A folder of notes kept in a memory as it is: what changed is replaced, what is gone forgotten.

pip install 'ekphory[docs]'
python examples/mirror_folder.py notes/ --prune
python examples/mirror_folder.py notes/ --watch
"""

from __future__ import annotations

import argparse

from ekphory import Memory
from ekphory.importers import DocumentOptions, import_documents, watch_documents


def main() -> None:
    """Import the folder, once or until Ctrl-C, and tell what became of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--store", default="./memories")
    parser.add_argument("--prune", action="store_true", help="forget what is gone")
    parser.add_argument("--watch", action="store_true", help="follow changes; prunes too")
    given = parser.parse_args()
    options = DocumentOptions(gone="forget" if given.prune or given.watch else "keep")
    with Memory(given.store) as memory:
        follow = watch_documents if given.watch else import_documents
        report = follow(memory, given.folder, options=options)
    print(f"{report.added} added, {report.forgotten} forgotten, {report.skipped} already there")
    for reason, count in report.left_out.items():
        print(f"left out: {count} x {reason}")
    for failure in report.examples:
        print(f"refused: {failure.place}: {failure.message}")


if __name__ == "__main__":
    main()
