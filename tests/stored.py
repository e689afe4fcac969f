"""What lies in a store, read by LanceDB itself: compressed columns hide it from who reads bytes."""

from pathlib import Path

import lancedb


def stored_rows(store_path):
    """All rows of all tables below a folder, of each version that is kept, as one text."""
    rows = []
    for folder in sorted(each for each in Path(store_path).rglob("*.lance") if each.is_dir()):
        table = lancedb.connect(folder.parent).open_table(folder.stem)
        for version in table.list_versions():
            table.checkout(version["version"])
            rows += table.to_arrow().to_pylist()
    assert rows, "there is no table"
    return "\n".join(map(repr, rows))
