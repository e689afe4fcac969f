"""What a model says that each hop gave."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.prompting.hits import hit

from ekphory.agent.llm_dialogue import lay_out, load_spec
from ekphory.agent.llm_session import read_final_words
from ekphory.agent.provider import QueryHits
from ekphory.errors import InvalidInput

WIFE = hit("Rembrandt married Saskia")
ROOF = hit("The roof leaks")
FOUND = [QueryHits("wife of Rembrandt", (ROOF, WIFE)), QueryHits("roof", (ROOF,))]
TEXT = """[StageResult] Query: Wife of Rembrandt? | Answer: Saskia | Confidence: 0.9 | Reason: a
She was Saskia.
Sufficient: yes"""


def test_a_line_becomes_a_hop_with_the_memory_that_states_it():
    # A line becomes a hop with the memory that states it.
    words = read_final_words(TEXT, FOUND)
    (hop,) = words.hops
    assert (hop.answer, hop.confidence, hop.memory_ids) == ("Saskia", 0.9, (WIFE.id,))
    assert words.response == "She was Saskia.\nSufficient: yes"
    assert words.sufficient
    # A model that tells no hops has one for each query.
    hops = read_final_words("Done.", FOUND).hops
    assert [(hop.query, hop.memory_ids) for hop in hops] == [
        ("wife of Rembrandt", (ROOF.id,)),
        ("roof", (ROOF.id,)),
    ]
    # A model may say that it is not enough.
    assert not read_final_words("Nothing found.\nSufficient: no", FOUND).sufficient


@pytest.mark.parametrize(
    ("said", "confidence"),
    [("0.9", 0.9), (".9 (sure)", 0.9), ("**0.9**", 0.9), ("5%", 0.05), ("90 %", 0.9), ("2", 1.0),
     ("-1", 0.0), ("high", 0.5), ("", 0.5)],
)  # fmt: skip
def test_a_confidence_is_read_however_a_model_writes_it(said, confidence):
    line = f"[StageResult] Query: a | Answer: Saskia | Confidence: {said} | Reason: it says so"
    words = read_final_words(f"{line}\nDone.", FOUND)
    (hop,) = words.hops
    assert (hop.answer, hop.confidence, hop.reason) == ("Saskia", confidence, "it says so")
    assert words.response == "Done."


@given(st.text(max_size=300))
def test_whatever_a_model_says_is_read(text):
    words = read_final_words(f"[StageResult] Query: a | Answer: {text} | Confidence: {text}", FOUND)
    assert all(0 <= hop.confidence <= 1 for hop in words.hops)


@pytest.mark.parametrize(
    "text",
    ["\n" * 20_000, "*\n" * 10_000, f"[StageResult] Query: a | Answer:{' ' * 20_000}b | c"],
)
def test_blanks_without_end_are_read_at_once(text):
    started = time.perf_counter()
    read_final_words(text, FOUND)
    assert time.perf_counter() - started < 1


@pytest.fixture
def bundle(tmp_path):
    with lay_out([load_spec("coq")], str(tmp_path / "root")) as directory:
        yield directory


@pytest.mark.parametrize("name", ["retrieve_agent", "coq"])
def test_the_bundled_files_are_sound(name):
    spec = load_spec(name)
    assert spec.name == name.replace("_", "-")
    assert spec.body.startswith("# ")
    assert "## Completion" in spec.body


def search(query):
    return f"found {query}"


@pytest.mark.parametrize("command", ["cat {}", "sed -n '1,200p' {}", "head -n 5 {}"])
def test_a_shell_may_read_the_guidance(bundle, command):
    path = bundle.path(bundle.specs[0]) / "SKILL.md"
    assert "# Chain of queries" in bundle.run(command.format(path), search)
    assert bundle.run("ls -l", search) == str(path)


@pytest.mark.parametrize(
    "command",
    ["cat /etc/passwd", "cat ../SKILL.md", "rm -rf /", "cat 'open", "", "curl http://localhost",
     "cat {} ; rm -rf /", "memmachine search"],
)  # fmt: skip
def test_a_shell_may_do_nothing_else(bundle, command):
    path = bundle.path(bundle.specs[0]) / "SKILL.md"
    assert bundle.run(command.format(path), search).startswith("Only reading the attached guidance")


def test_a_command_that_searches_is_a_search(bundle):
    assert bundle.run('memmachine search "wife of Ida"', search) == "found wife of Ida"


def test_nothing_of_the_bundle_is_left_behind(tmp_path):
    # Nothing of the bundle is left behind.
    with lay_out([load_spec("coq")], str(tmp_path)) as directory:
        assert (directory.root / "coq" / "SKILL.md").is_file()
    assert list(tmp_path.iterdir()) == []
    # A bundle that cannot be written leaves no folder.
    twice = [load_spec("coq"), load_spec("coq")]  # the second folder is there already

    with (
        pytest.raises(InvalidInput, match=r"agent_native_bundle_root.*cannot be written"),
        lay_out(twice, str(tmp_path)),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
