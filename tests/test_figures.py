"""The figures of the documentation: how they are measured, and how pages show them."""

import json
import re
import shlex
from dataclasses import fields, replace

import pytest
import typer
from scripts import show_fitted
from scripts.figures.__main__ import differences, main
from scripts.figures.definitions import (
    Figure,
    FigureError,
    Picture,
    Run,
    Table,
    read_definitions,
    select_values,
)
from scripts.figures.measuring import (
    FIGURES,
    ROOT,
    Measurement,
    measure,
    present_models,
    read_measurement,
    write_measurement,
)
from scripts.figures.pages import Shown, fill_in, read_shown, render_page, rendered_files
from scripts.figures.pictures import draw
from scripts.possible_ndcg import possible_ndcg
from tests.cases import read_tables

from ekphory.cli.app import app

DEFINED = read_definitions()
CASES = read_tables(__file__)

# The figures that are there.


def test_every_page_and_picture_shows_what_was_measured():
    wrong = [
        file.name
        for file, text in rendered_files(read_shown(DEFINED))
        if not file.exists() or file.read_text(encoding="utf-8") != text
    ]
    assert wrong == [], "run python -m scripts.figures --pages"


def test_every_figure_that_is_defined_is_shown_on_a_page():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in DEFINED if f"<!-- figure: {name}" not in text] == []


@pytest.mark.parametrize("file", sorted(FIGURES.glob("*.json")), ids=lambda file: file.stem)
def test_a_file_holds_a_defined_figure_and_nothing_of_the_machine_that_measured_it(file):
    measured = read_measurement(file.stem)
    assert measured.name == file.stem
    assert file.stem in DEFINED
    assert all(isinstance(value, float | int) for value in measured.values.values())
    assert all(len(sha) == 64 and not path.startswith("/") for path, sha in measured.data.items())
    assert str(ROOT.parent) not in file.read_text(encoding="utf-8")


def test_what_is_shown_of_fitted_files_is_what_they_say():
    shown = read_measurement("fitted").values
    said = select_values(show_fitted.measured(), DEFINED["fitted"].runs[0])
    assert said == shown, "run python -m scripts.figures fitted --again"


COMMANDS = sorted({run.command for figure in DEFINED.values() for run in figure.runs})


COMMAND_LINE = typer.main.get_command(app)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_one_that_ekphory_takes(command):
    words = [word for word in shlex.split(command) if not word.startswith("EKPHORY_")]
    if words[:2] == ["python", "-m"]:
        assert ROOT.joinpath(*words[2].split(".")).with_suffix(".py").is_file()
        return
    node, rest = COMMAND_LINE, words[1:]
    while hasattr(node, "commands"):
        node, rest = node.commands[rest[0]], rest[1:]
    assert node.make_context(words[0], rest).params["json_file"] is not None


def test_the_check_says_how_old_a_figure_is(capsys):
    assert main(["possible-ndcg", "bench-million", "--check"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"possible-ndcg: (up to date|of other code \(commit [0-9a-f]{12}\))", first)
    assert second.startswith("bench-million: ")


def test_the_check_says_which_data_it_could_not_compare(capsys, tmp_path):
    assert main(["presets", "changes", "--check", "--data", str(tmp_path)]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    missing = "locomo_dev/locomo.json, updates_dev/scenarios.jsonl"
    assert last == f"not compared, for they are missing in {tmp_path}: {missing}"


def test_a_name_that_is_not_a_figure_is_refused(capsys):
    assert main(["smell"]) == 1
    assert "there is no figure 'smell'; choose from readme, presets" in capsys.readouterr().err


# Measuring.

SAID = """{"MAP": 0.5, "taste": None}"""
COMMAND = f'python -c \'import json; open("runs", "a").write("x"); print(json.dumps({SAID}))\''


def figure(**changes):
    runs = (Run(command=COMMAND, keep=("MAP|taste",)),)
    return replace(Figure(name="taste", data=("set/a.txt",), minutes=1, runs=runs), **changes)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "set").mkdir(parents=True)
    (folder / "set" / "a.txt").write_text("one", encoding="utf-8")
    return folder


def test_a_figure_says_what_decided_it(data, tmp_path):
    found = measure(figure(models=("embedder",)), data, tmp_path / "kept")
    assert found.values == {"MAP": 0.5}
    sha = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    assert found.data == {"set/a.txt": sha}
    assert found.models["embedder"].startswith("ekphory-small@")
    assert found.seconds > 0
    assert re.search(r"\d cores; .*; Python 3\.\d+.*; load \d+\.\d when it began$", found.machine)
    write_measurement(found, tmp_path)
    written = json.loads((tmp_path / "taste.json").read_text(encoding="utf-8"))
    assert list(written) == [each.name for each in fields(Measurement)]
    assert read_measurement("taste", tmp_path) == found


def test_what_was_run_is_not_run_again_while_data_and_command_are_the_same(data, tmp_path):
    def runs():
        measure(figure(), data, tmp_path / "kept")
        return (data / "runs").read_text()

    assert [runs(), runs()] == ["x", "x"]
    (data / "set" / "a.txt").write_text("two", encoding="utf-8")
    assert runs() == "xx"
    measure(figure(), data, tmp_path / "kept", again=True)
    assert runs() == "xxx"


def test_no_variable_of_the_user_decides_a_figure(data, tmp_path, monkeypatch):
    monkeypatch.setenv("EKPHORY_RERANKER", "https://host/v1")
    counts = "python -c 'import os; print([sum(n[:8] == \"EKPHORY_\" for n in os.environ)])'"
    runs = (
        Run(command=counts, keep=("#",), prefix="of the user"),
        Run(command=f"EKPHORY_PRESET=fast {counts}", keep=("#",), prefix="of the command"),
    )
    found = measure(figure(runs=runs), data, tmp_path / "kept")
    assert found.values == {"of the user/0": 0.0, "of the command/0": 1.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": ("set/b.txt",)}, "set/b.txt is missing in .* DATA=DIR"),
        ({"models": ("oracle",)}, "no model 'oracle' is bundled; name embedder, "),
        ({"runs": (Run(command="rm -r x", keep=("a",)),)}, "begins with none of ekphory, python"),
        ({"runs": (Run(command="python -c 'exit(3)'", keep=("a",)),)}, "ended with status 3"),
        ({"runs": (Run(command="python -c 'print({})'", keep=("a",)),)}, "there is no 'a'"),
    ],
)
def test_a_figure_that_cannot_be_measured_says_why(data, tmp_path, changes, message):
    with pytest.raises(FigureError, match=message):
        measure(figure(**changes), data, tmp_path / "kept")


@pytest.mark.parametrize(("path", "values"), CASES["paths"])
def test_a_path_chooses_numbers_and_its_choices_name_them(path, values):
    assert select_values(CASES["document"], Run(command="x", keep=(path,))) == values
    named = select_values(CASES["document"], Run(command="x", keep=(path,), prefix="set"))
    assert named == {f"set/{key}": value for key, value in values.items()}


@pytest.mark.parametrize(("keep", "message"), CASES["wrong_paths"])
def test_a_path_that_finds_nothing_or_too_much_is_refused(keep, message):
    with pytest.raises(FigureError, match=message):
        select_values(CASES["document"], Run(command="x", keep=keep))


# Pages.

SHOWN = figure(models=("embedder",), tables=(Table(header=" | MAP", rows=("ours | {MAP}",)),))
MEASURED = Measurement(
    name="taste",
    command=SHOWN.command,
    commit="0" * 40,
    models=present_models(SHOWN),
    data={},
    machine="a machine, 2 cores",
    seconds=1.0,
    values={"MAP": 0.5},
)
PAGE = "Text.\n\n<!-- figure: taste -->\n\nas of old\n\n<!-- /figure -->\n\nMore.\n"
MARK = "*Not measured with the present models: `make figures NAME=taste` does that.*"


def rendered(measured, page=PAGE):
    return render_page(page, ROOT / "docs" / "page.md", {"taste": Shown(SHOWN, measured)})


def test_what_was_never_measured_keeps_what_stands_there_under_a_mark():
    once = rendered(None)
    mark = MARK.replace("models:", "models, as far as is recorded:")
    assert f"<!-- figure: taste -->\n\n{mark}\n\nas of old\n\n<!-- /figure -->\n\nMore." in once
    assert rendered(None, once) == once


def test_what_was_measured_with_the_present_models_stands_unmarked():
    models = MEASURED.models["embedder"]
    text = rendered(MEASURED, rendered(None))
    assert "|  | MAP |\n| --- | ---: |\n| ours | .500 |" in text
    assert f"[Measured](figures/taste.json) with `{models}`, on a machine, 2 cores." in text
    assert "as of old" not in text
    assert MARK not in text
    assert rendered(MEASURED, text) == text


@pytest.mark.parametrize(
    "other", [{"models": {"embedder": "ekphory-small@0"}}, {"command": "another"}]
)
def test_what_was_measured_with_other_models_is_marked(other):
    text = rendered(replace(MEASURED, **other))
    assert f"{MARK}\n\n|  | MAP |" in text
    assert MARK not in rendered(MEASURED, text)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"models": {"embedder": "ekphory-small@0"}}, ["of other models (ekphory-small@0, "]),
        ({"command": "another"}, ["of another command"]),
        ({"data": {"set/a.txt": "0" * 64}}, ["of other data"]),
    ],
)
def test_a_figure_is_old_where_models_data_or_command_are_others(data, tmp_path, changes, said):
    sha = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    measured = replace(MEASURED, **{"data": {"set/a.txt": sha}, **changes})
    found = differences(Shown(SHOWN, measured), data)
    assert len(found) == len(said)
    assert all(text.startswith(start) for text, start in zip(found, said, strict=True))
    # Data that are not there make no figure old.
    assert "of other data" not in differences(Shown(SHOWN, measured), tmp_path)


def test_a_page_can_show_the_commands_and_no_figure_that_is_not_defined():
    place = "<!-- figure: taste/command -->\n<!-- /figure -->"
    assert f"```\n{SHOWN.command}\n```" in rendered(None, place)
    for name, message in (("smell", "no figure 'smell'"), ("taste/sweet", "no table 'sweet'")):
        with pytest.raises(FigureError, match=message):
            rendered(MEASURED, f"<!-- figure: {name} --><!-- /figure -->")


@pytest.mark.parametrize(("template", "text"), CASES["templates"])
def test_a_template_is_filled_in(template, text):
    assert fill_in(Table(rows=(template,)), CASES["values"]) == text


def test_rows_are_repeated_for_each_match():
    table = Table(
        header="system | MAP", for_each="*/MAP", labels={"a": "ours"}, rows=("{label} | {{0}/MAP}",)
    )
    assert fill_in(table, CASES["values"]).splitlines()[2:] == ["| ours | .600 |", "| b | .250 |"]


def test_facts_of_which_nothing_was_measured_have_a_row_that_says_so():
    text = fill_in(DEFINED["configurations"].table(""), read_measurement("configurations").values)
    rows = {row.split(" | ")[0].strip("| "): row for row in text.splitlines()}
    assert "| F | Hybrid + HyDE |  | not measured | " in rows["F"]
    names = list(rows)
    assert names[names.index("E") :][:3] == ["E", "F", "G"]
    assert len(names) == 2 + 36


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(FigureError, match="there is no value 'c/MAP'"):
        fill_in(Table(rows=("{c/MAP}",)), CASES["values"])


# Pictures.

POINTS = Picture(
    name="p", title="A < B", x="*/x", y="*/y", x_label="ms", y_label="MAP", scale="powers"
)


def test_a_point_lies_where_its_values_are():
    values = {"fast/x": 1.0, "fast/y": 0.4, "slow/x": 100.0, "slow/y": 0.6}
    drawn = draw(POINTS, values)
    # The axis across goes from 1 to 100, the one up from .4 to .6.
    assert '<circle cx="60.0" cy="348.0"' in drawn
    assert '<circle cx="596.0" cy="44.0"' in drawn
    assert "A &lt; B" in drawn
    assert drawn.count("<circle") == 2


def test_points_of_a_series_are_a_line():
    picture = replace(
        POINTS, x="*/*/x", y="*/*/y", size="*/*/n", scale="probability", series=("a",)
    )
    values = {
        f"{series}/{place}/{key}": float(value)
        for series in ("a", "b")
        for place in (0, 1)
        for key, value in (("x", place), ("y", place), ("n", 1 + 3 * place))
    }
    drawn = draw(picture, values)
    assert '<polyline points="60.0,348.0 596.0,44.0"' in drawn
    assert drawn.count("<circle") == 2
    assert 'r="11.0"' in drawn
    with pytest.raises(FigureError, match="no value fits"):
        draw(picture, {})


def test_a_bar_ends_at_its_median_and_a_line_at_the_largest_times():
    values = {"read/p50": 50.0, "read/p95": 80.0, "fuse/p50": 0.0, "fuse/p95": 20.0}
    drawn = draw(replace(POINTS, x="*/p50", y="*/p95", scale="bars"), values)
    # The axis goes from 140 to 536 for 0 to 80.
    assert '<rect x="140" y="66.8" width="247.5" height="106.4"' in drawn
    assert '<line x1="387.5" y1="120.0" x2="536.0" y2="120.0"' in drawn
    assert '<rect x="140" y="218.8" width="0.0"' in drawn
    assert drawn.count(">read<") == drawn.count(">50.00<") == drawn.count(">0.00<") == 1


def test_mrr_and_recall_leave_little_room_for_ndcg():
    low, high = possible_ndcg([1.0, 1.0, 1.0])
    assert (low, high) == pytest.approx((1.0, 1.0), abs=0.001)
    # Every answer has rank 2: 1 / log2(3).
    assert possible_ndcg([0.5, 0.0, 1.0])[1] > 0.6309
    with pytest.raises(ValueError, match="no ranking has them"):
        possible_ndcg([0.1, 0.5, 0.9])


def test_the_example_of_a_cluster_of_a_hundred_million_follows_from_what_was_measured():
    value = read_measurement("cluster", FIGURES).values
    stored, held, process = (
        value[name] / 1e9 for name in ("a_million/stored", "a_million/held", "process_bytes")
    )
    warm, cold = value["warm/requests"], value["cold/requests"]
    commit, searches = value["commit/requests"], value["cpu_search/all"]
    taken, write = value["commit/cpu"] / 1000, value["cpu_write/all"]
    expected = [
        f"100 × {stored:.2f} GB | {100 * stored:.0f} GB",
        f"1,000 × (.99 × {warm:.0f} + .01 × {cold:.1f}) + 100 × {commit:.1f} | "
        f"{1000 * (0.99 * warm + 0.01 * cold) + 100 * commit:,.0f} a second",
        f"64 × {process:.2f} GB + 10 × {held:.2f} GB | {64 * process + 10 * held:.0f} GB",
        f"{searches:.1f} + 100 × {taken:.3f} | {searches + 100 * taken:.0f} cores",
        f"100 × {write:,.0f} s | {100 * write / 3600:.0f} core hours, "
        f"{value['cpu_write/embedder'] / write:.0%} of them the embedder's",
    ]
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    shown = page.replace("× .0", "× 0.0").replace("× .5", "× 0.5")
    assert [row for row in expected if row.replace("%", " %") not in shown] == []
