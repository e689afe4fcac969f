"""Source code: which definitions are found, what belongs to them, and what is too much."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from documents.making import passages_of, read
from ekphory.documents import source_code
from ekphory.documents.blocks import Problem, SkippedPart, join_passages
from ekphory.documents.settings import ReadingSettings
from ekphory.importers.documents import import_documents

TABLE = source_code._TABLE
NO_KINDS = ("suffixes", "example", "names")
SHOP = '''import os

# Of one customer.
@dataclass
class Basket(dict):
    """What is bought."""

    # Rounds to whole cents.
    @property
    def total_price(self):
        return sum(self)

    currency = "EUR"


def pay(basket):
    """Charges the credit card."""
'''
TOO_MUCH = {
    "over 1 MB": "pay = 1\n" * 150_000,
    "nested over 500 deep": "def pay(): " + "(1 + " * 501,
    "that takes over 2 s to parse": SHOP,
}
HOSTILE = {
    "m.js": "function pay(){return 1};" * 4_000,
    "m.ts": "a<" * 5_000 + "\nfunction pay() {}",
    "m.go": f"func (a {'b' * 50_000}, ) Pay() {{}}",
    "m.rs": "fn pay() { \n" + "'pay " * 5_000,
    "m.py": "".join(f"{' ' * depth}class A{depth}:\n" for depth in range(501)),
}


def found_in(path):
    return [(one.section.headings[0], f"{one.first}-{one.last}") for one in passages_of(path)]


@pytest.mark.parametrize("language", TABLE)
def test_the_definitions_of_every_language_are_found_in_its_example(file, language):
    example, names = TABLE[language]["example"], TABLE[language]["names"]
    for suffix in TABLE[language]["suffixes"]:
        assert [name for name, _ in found_in(file(f"m{suffix}", example))] == names


@pytest.mark.parametrize("language", TABLE)
def test_every_kind_in_the_table_is_one_of_the_grammar(language):
    name = next(iter(TABLE[language]["suffixes"].values()))
    grammar = source_code._load_grammar(f"tree_sitter_{language}", name)
    kinds = [kind for key in TABLE[language].keys() - NO_KINDS for kind in TABLE[language][key]]
    assert [kind for kind in kinds if not grammar.id_for_node_kind(kind, True)] == []


def test_a_definition_has_its_name_its_lines_and_what_stands_right_above_it(file):
    basket, total, rest, pay = found_in(file("shop.py", SHOP))
    assert (basket, rest) == (("shop.Basket", "3-6"), ("shop.Basket", "13-13"))
    assert (total, pay) == (("shop.Basket.total_price", "8-11"), ("shop.pay", "16-17"))
    assert read(file("imports.py", "import os\nimport re\n")) == [SkippedPart("imports")]


def test_code_is_found_by_name_and_by_what_it_does_in_a_pool_of_its_own(memory, file):
    file("src/notes.txt", "The shop opens at nine.")
    import_documents(memory, file("src/app/shop.py", SHOP).parent.parent)
    for question in ("total_price", "what rounds to cents?"):
        best = memory.search(question, k=1)[0].memory
        assert (best.heading, best.lines) == ("shop.Basket.total_price", "8-11")
        assert (best.path, best.pool) == ("app/shop.py", "reference_code")
    assert memory.search("who charges a card?", k=1)[0].memory.heading == "shop.pay"
    assert memory.count(filter="pool = 'reference_library'") == 1


def test_a_module_is_called_as_its_folder_where_its_file_says_nothing(file):
    assert found_in(file("shop/__init__.py", "def pay(): ...")) == [("shop.pay", "1-1")]
    assert read(file("empty/__init__.py", "")) == [SkippedPart("empty file")]


def test_what_stands_before_a_syntax_error_is_found_and_the_error_is_counted(file):
    text = "class A:\n    def ok(self):\n        return 1\n\n    def bad(self)\n        return 2\n"
    path = file("m.py", text)
    assert found_in(path) == [("m.A", "1-1"), ("m.A.ok", "2-3"), ("m.A", "5-6")]
    told = SkippedPart("definitions next to a syntax error, read with the lines around it")
    assert read(path).count(told) == 1


@pytest.mark.parametrize("text", ["`" * 1_000_000, "...\n", ");\n"])
def test_code_without_a_letter_is_counted_as_what_it_is(file, text):
    assert read(file("m.py", text))[-1] == SkippedPart("mostly punctuation")


def test_a_definition_of_many_pages_is_in_pieces_that_give_it_whole(memory, file):
    text = "def pay():\n" + "\n".join(f"    charge(card, 'of the house', {n})" for n in range(200))
    import_documents(memory, file("shop.py", text))
    pieces = memory.list()
    assert len(pieces) > 4
    assert {piece.heading for piece in pieces} == {"shop.pay"}
    assert join_passages(pieces) == text


@pytest.mark.parametrize("reason", TOO_MUCH)
def test_what_is_too_much_is_read_in_blocks_of_lines_and_counted(file, monkeypatch, reason):
    if "2 s" in reason:
        monkeypatch.setattr(source_code, "LONGEST_PARSE", 0.0)
    first, *rest = read(file("m.py", TOO_MUCH[reason]))
    assert first == SkippedPart(f"definitions of a file {reason}, read in blocks of lines")
    assert {one.section.headings for one in rest} == {("m",)}


def test_as_many_levels_as_are_read_are_read(file):
    assert found_in(file("m.py", "def pay(): " + "(1 + " * 499 + ")" * 499))[0][0] == "m.pay"


@pytest.mark.parametrize("data", [b"def pay():\0", b"\x7fELF\0\0", b"# caf\xe9\ndef pay(): ...\n"])
def test_what_is_no_text_is_refused(file, data):
    (problem,) = read(file("m.py", data))
    assert isinstance(problem, Problem)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_of_a_hostile_file_is_lost(file, name):
    found = source_code.read_source_code(file(name, HOSTILE[name]), ReadingSettings())
    kept = "".join(one.text for one in found if not isinstance(one, SkippedPart))
    assert "".join(kept.split()) == "".join(HOSTILE[name].split())


WITHOUT = """
import json, os, sys
os.chdir(sys.argv[1])
sys.modules["tree_sitter"] = sys.modules["pypdfium2"] = None
from ekphory.errors import MissingExtra
from ekphory.importers.run import import_path
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder
with Memory("store", embedder=HashEmbedder()) as memory:
    reports = [import_path(memory, name) for name in ("src", "src/a.py", "code")]
    try:
        import_path(memory, "code/a.pdf")
    except MissingExtra as error:
        print(json.dumps([[[one.added, one.left_out] for one in reports], str(error)]))
"""


@pytest.mark.slow
def test_what_an_extra_reads_is_passed_over_without_it_and_the_report_names_it(file, tmp_path):
    for name in ("src/a.py", "src/b.go", "src/notes.txt", "code/a.py", "code/a.pdf"):
        file(name, "Words of the house.")
    command = [sys.executable, "-c", WITHOUT, tmp_path]
    reports, refused = json.loads(subprocess.run(command, capture_output=True).stdout)
    code = "source code (pip install 'ekphory[code]' reads it)"
    assert reports == [
        [1, {code: 2}],
        [1, {"definitions of source code (pip install 'ekphory[code]' reads them)": 1}],
        [0, {"PDF (pip install 'ekphory[docs]' reads it)": 1, code: 1}],
    ]
    assert refused.endswith("Install it with: pip install 'ekphory[docs]'")
