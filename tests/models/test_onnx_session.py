import os
import subprocess
import sys

import pytest

from ekphory.errors import ModelError
from ekphory.models.onnx_models import OnnxSession, has_vnni


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("flags\t\t: fpu avx2 avx512_vnni\n", True),
        ("flags\t\t: fpu avx2 avx_vnni lm\n", True),
        ("flags\t\t: fpu avx2 avx512f\n", False),
        ("Features : fp asimd\n", False),
    ],
)
def test_only_a_processor_that_names_vnni_is_known_to_have_it(tmp_path, flags, expected):
    # Nor is it known of a system that does not describe its processor.
    assert not has_vnni(processors=tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text(f"processor : 0\n{flags}")
    assert has_vnni(processors=tmp_path / "cpuinfo") is expected


@pytest.mark.parametrize("model", [b"", b"not a graph", b"\x08\x09"])
def test_bytes_that_are_no_graph_are_refused_with_the_remedy(model):
    with pytest.raises(ModelError, match="upgrade onnxruntime"):
        OnnxSession(model, name="broken")


def test_nothing_is_noted_of_the_machine_on_which_a_model_runs(tmp_path):
    code = "from ekphory.models.onnx_models import load_bundled; load_bundled().encode(['tea'])"
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    named = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, "-c", code], env=named | home, check=True)
    assert list(tmp_path.rglob("*")) == []
