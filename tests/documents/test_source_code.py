"""Source code: which definitions are found, what belongs to them, and what is too much."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.resources import files

import pytest

from documents.making import passages_of, read
from ekphory.documents import source_code
from ekphory.documents.blocks import Problem, SkippedPart, join_passages
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.source_code import read_source_code
from ekphory.importers.documents import DocumentOptions, import_documents

TABLE = tomllib.loads(files("ekphory.documents").joinpath("languages.toml").read_text("utf-8"))
KINDS = {"leading", "imports", "groups", "containers", "definitions", "assigned", "values"}
BASKET = '''"""What a shop needs."""
import os

# Of one customer.
@dataclass
class Basket(dict):
    """What is bought."""

    limit = 9

    # Rounds to whole cents.
    @property
    def total_price(self):
        return sum(self)

    currency = "EUR"


def pay(basket):
    """Charges the credit card."""
'''


def found_in(path):
    return [(one.section.headings[0], f"{one.first}-{one.last}") for one in passages_of(path)]


@pytest.mark.parametrize("language", TABLE)
def test_the_definitions_of_every_language_are_found_by_their_kinds(file, language):
    entry = TABLE[language]
    for suffix in entry["suffixes"]:
        names = [name for name, _ in found_in(file(f"m{suffix}", entry["example"]))]
        # A name at the end may be that of lines around the definitions.
        assert [name for name in names if name != "m"] == [n for n in entry["names"] if n != "m"]


@pytest.mark.parametrize("language", TABLE)
def test_every_kind_in_the_table_is_one_of_the_grammar(language):
    entry = TABLE[language]
    assert set(entry) - KINDS == {"suffixes", "example", "names"}
    grammar = source_code._load_grammar(next(iter(entry["suffixes"].values())))
    kinds = [kind for key in KINDS & set(entry) for kind in entry[key]]
    assert [kind for kind in kinds if not grammar.id_for_node_kind(kind, True)] == []


def test_a_definition_has_its_name_its_lines_and_what_stands_right_above_it(file):
    path = file("shop.py", BASKET)
    assert found_in(path) == [
        ("shop", "1-1"),
        ("shop.Basket", "4-9"),
        ("shop.Basket.total_price", "11-14"),
        ("shop.Basket", "16-16"),
        ("shop.pay", "19-20"),
    ]
    assert passages_of(path)[2].text.startswith("    # Rounds to whole cents.\n    @property")
    assert read(path).count(SkippedPart("imports")) == 1


def test_code_is_found_by_name_and_by_what_it_does_in_a_pool_of_its_own(memory, file):
    file("src/notes.txt", "The shop opens at nine.")
    import_documents(memory, file("src/app/shop.py", BASKET).parent.parent)
    for question in ("total_price", "what rounds to cents?"):
        best = memory.search(question, k=1)[0].memory
        assert (best.heading, best.path, best.lines, best.pool, best.source) == (
            *("shop.Basket.total_price", "app/shop.py", "11-14", "reference_code", "document"),
        )
    assert memory.search("who charges a card?", k=1)[0].memory.heading == "shop.pay"
    assert memory.count(filter="pool = 'reference_library'") == 1
    import_documents(memory, file("src/notes.txt", "-").parent, options=DocumentOptions(pool="x"))
    assert {record.pool for record in memory.list(filter="path = 'app/shop.py'")} == {"x"}


def test_a_module_is_called_as_its_folder_where_its_file_says_nothing(file):
    assert found_in(file("shop/__init__.py", "def pay(): ...")) == [("shop.pay", "1-1")]
    assert read(file("empty/__init__.py", "")) == [SkippedPart("empty file")]


def test_a_definition_of_many_pages_is_in_pieces_that_give_it_whole(memory, file):
    text = "def pay():\n" + "".join(
        f"    charge({n}, 'the card of the house')\n" for n in range(200)
    )
    import_documents(memory, file("shop.py", text))
    pieces = memory.list()
    assert len(pieces) > 4
    assert {piece.heading for piece in pieces} == {"shop.pay"}
    assert join_passages(pieces) == text.rstrip()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pay = 1\n" * 150_000, "over 1 MB"),
        (f"def pay(): {'(' * 500}{')' * 500}", "nested over 500 deep"),
        ("".join(f"{' ' * n}class A{n}:\n" for n in range(501)), "nested over 500 deep"),
    ],
)
def test_what_is_too_large_or_too_deep_is_read_in_blocks_of_lines_and_counted(file, text, reason):
    first, *rest = read(file("m.py", text))
    assert first == SkippedPart(f"definitions of a file {reason}, read in blocks of lines")
    assert {one.section.headings for one in rest} == {("m",)}
    assert "\n".join(one.text for one in rest).split() == text.split()


def test_what_takes_too_long_to_parse_is_read_in_blocks_of_lines_too(file, monkeypatch):
    monkeypatch.setattr(source_code, "LONGEST_PARSE", 0.0)
    first, *rest = read(file("m.py", BASKET * 50))
    assert "that takes over 2 s to parse" in first.reason
    assert {one.section.headings for one in rest} == {("m",)}


def test_as_many_levels_as_are_read_are_read(file):
    assert found_in(file("m.py", f"def pay(): {'(' * 499}{')' * 499}")) == [("m.pay", "1-1")]


@pytest.mark.parametrize("data", [b"def pay():\0", b"\x7fELF\0\0", b"# caf\xe9\ndef pay(): ...\n"])
def test_what_is_no_text_is_refused(file, data):
    (problem,) = read(file("m.py", data))
    assert isinstance(problem, Problem)


HOSTILE = {
    "m.js": "function pay(){return 1};" * 4_000,
    "m.ts": "a<" * 5_000 + "\nfunction pay() {}",
    "m.go": f"func (a {'b' * 50_000}, ) Pay() {{}}",
    "m.rs": "fn pay() { \n" + "'pay " * 5_000,
    "m.java": "}}}} class A { void pay( } " * 500,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_of_a_hostile_file_is_lost(file, name):
    found = read_source_code(file(name, HOSTILE[name]), ReadingSettings())
    assert "".join("".join(one.text for one in found).split()) == "".join(HOSTILE[name].split())


def test_definitions_beside_a_mistake_are_found(file):
    text = "def pay():\n    return 1\n\nx = = (\n\ndef refund():\n    return 2\n"
    assert "m.pay" in dict(found_in(file("m.py", text)))


WITHOUT = """
import json, sys
from pathlib import Path
sys.modules["tree_sitter"] = None
from ekphory.errors import MissingExtra
from ekphory.importers.run import import_path
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder
root = Path(sys.argv[1])
with Memory(root / "store", embedder=HashEmbedder()) as memory:
    reports = [import_path(memory, root / name) for name in ("src", "src/a.py")]
    try:
        import_path(memory, root / "code")
    except MissingExtra as error:
        refused = str(error)
print(json.dumps([[[one.added, dict(one.left_out)] for one in reports], refused]))
"""


def test_without_the_extra_code_is_read_as_ever_and_the_report_names_it(file, tmp_path):
    for name in ("src/a.py", "src/b.go", "src/notes.txt", "code/a.py"):
        file(name, "Words of the house.")
    command = [sys.executable, "-c", WITHOUT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=True)
    reason = "source code (pip install 'ekphory[code]' reads its definitions)"
    refused = "Reading source code files needs an optional dependency. "
    assert json.loads(done.stdout) == [
        [[1, {reason: 2}], [1, {reason: 1}]],
        refused + "Install it with: pip install 'ekphory[code]'",
    ]
