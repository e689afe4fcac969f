from dataclasses import replace

import pytest

from ekphory.store.checks import examine
from ekphory.store.protocol import StoreHealth

HEALTHY = StoreHealth(
    memories=30_000,
    history=1,
    vectors=40_000,
    fragments=3,
    small_fragments=0,
    versions=2,
    bytes=60_000_000,
    vector_index_rows=40_000,
    orphaned_scopes=(),
)


def finding(health, subject):
    (found,) = (entry for entry in examine(health) if entry.subject == subject)
    return found.state, found.sentence


def test_every_part_of_a_healthy_store_is_fine():
    assert [entry.sentence for entry in examine(HEALTHY)] == [
        "30,000 memories, 1 earlier version and 40,000 vectors.",
        "60.0 MB on disk, 2,000 bytes a memory.",
        "3 data files, 0 of them small.",
        "2 versions kept on disk.",
        "The vector index covers 40,000 of 40,000 vectors (100%).",
        "Every scope holds a memory that can be found.",
        "Upkeep succeeds.",
    ]
    assert {entry.state for entry in examine(HEALTHY)} == {"fine"}


@pytest.mark.parametrize(
    ("changes", "subject", "state", "sentence"),
    [
        (
            {"fragments": 90, "small_fragments": 80},
            "fragments",
            "repairable",
            "90 data files, of which 80 are small; merged, they read faster.",
        ),
        (
            {"versions": 2_000},
            "versions",
            "repairable",
            "2,000 versions are kept on disk; old ones can go.",
        ),
        (
            {"vector_index_rows": 10_000},
            "index",
            "repairable",
            "The vector index covers 10,000 of 40,000 vectors (25%); the others are scanned.",
        ),
        (
            {"vector_index_rows": None},
            "index",
            "note",
            "No vector index yet; it is built once a scope of over 20,000 vectors is searched.",
        ),
        (
            {"vector_index_rows": None, "vectors": 500},
            "index",
            "fine",
            "No vector index, and none needed: so few vectors are searched exactly.",
        ),
        (
            {"bytes": None},
            "bytes",
            "note",
            "Its size is not measured: it is not a local directory.",
        ),
        (
            {"orphaned_scopes": ("project=old", "user=eve")},
            "scopes",
            "note",
            "2 scopes hold nothing but expired memories or history: project=old, user=eve. "
            "Wipe them with `ekphory forget --purge` if they are not wanted.",
        ),
    ],
)
def test_what_is_not_fine_is_said(changes, subject, state, sentence):
    assert finding(replace(HEALTHY, **changes), subject) == (state, sentence)


def test_upkeep_that_fails_is_to_be_mended():
    failing = replace(HEALTHY, upkeep_failure="Upkeep has failed once since noon: no space left")
    finding = examine(failing)[-1]
    assert (finding.subject, finding.state) == ("upkeep", "repairable")
    assert finding.sentence == "Upkeep has failed once since noon: no space left"
