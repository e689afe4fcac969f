from ekphory.retrieval.snapshot import LEAST_BYTES, snapshot_budget


def test_a_container_with_a_limit_gives_an_eighth_of_it(tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text(f"{4 * 2**30}\n")
    assert snapshot_budget(limit_file=limit) == 2**29


def test_a_small_container_gives_the_least(tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text("1000000\n")
    assert snapshot_budget(limit_file=limit) == LEAST_BYTES


def test_no_limit_leaves_an_eighth_of_the_machine(tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text("max\n")
    assert snapshot_budget(limit_file=limit) >= LEAST_BYTES
    assert snapshot_budget(limit_file=tmp_path / "none") == snapshot_budget(limit_file=limit)
