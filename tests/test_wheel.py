"""What a user installs: the wheel, built from the source and run outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ekphory"
MOST_BYTES = 80_000_000  # a package index takes 100 MB unasked

pytestmark = pytest.mark.slow


def built(source, folder):
    """Build the wheel of a project, and return its path."""
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([sys.executable, "-m", "pip", *build, str(folder), str(source)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    files = [path for path in PACKAGE.rglob("*") if path.is_file()]
    expected = {path.relative_to(ROOT / "src").as_posix() for path in files}
    names = zipfile.ZipFile(wheel).namelist()
    held = {name for name in names if ".dist-info/" not in name}
    assert held == {name for name in expected if "__pycache__" not in name}


def test_the_wheel_holds_the_model_the_demo_and_the_licence_and_nothing_that_trains(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "ekphory/models/bundled/ekphory-small/model.onnx" in names
    assert "ekphory/cli/demo_data/conversation.jsonl" in names
    assert "ekphory/py.typed" in names
    licences = {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE"}
    assert [name for name in names if "training" in name or "evaluation" in name] == []
    # No larger than a package index likes.
    assert wheel.stat().st_size <= MOST_BYTES


def test_the_wheel_of_the_lab_adds_its_commands(tmp_path):
    archive = zipfile.ZipFile(built(ROOT / "lab", tmp_path))
    (entries,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    assert archive.read(entries).decode() == (
        "[ekphory.commands]\nlab = ekphory_lab.cli.commands:COMMANDS\n"
    )
    assert "ekphory_lab/training/conversations/README.md" in archive.namelist()


@pytest.mark.long
def test_the_demo_runs_from_the_unpacked_wheel(wheel, tmp_path):
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(wheel).extractall(unpacked)
    run = "import ekphory, sys; from ekphory.cli.app import main; print(ekphory.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", f"{run}; sys.argv[1:] = ['demo']; main()"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(unpacked), "HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(str(unpacked))
