"""Change one line of the core at a time, and tell which changes the fast tests do not see.

    python -m scripts.mutants            draw, trace the tests once, run what has no verdict yet
    python -m scripts.mutants --all      run the survivors again, with every test that may see them
    python -m scripts.mutants --report   print what is known so far

The mutants are drawn with a fixed seed: a package's share is its share of the lines that can be
changed; a line is drawn first, then one of its changes. The operators are cosmic-ray's. Each mutant
is run in a copy of the checkout, by the tests that a traced run saw executing its line: those of
the module's own test file first, then the quickest, for as long as `--budget` seconds of them.
One that no such test fails for has survived, so the share killed is a lower bound.

Verdicts are appended to build/mutants/verdicts.jsonl; a run that was stopped goes on where it was,
with the checkout as it was when it was traced. To begin anew, remove build/mutants.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import itertools
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "mutants"
TRACED = BUILD / "traced"
"""The copy of the checkout that a run is about."""
PRODUCT = "src/ekphory"
STRATA = {
    "write": ("write.py",),
    "search": ("search.py",),
    "history": ("history.py",),
    "retrieval": ("retrieval",),
    "store": ("store",),
    "prompting": ("prompting",),
    "server authentication": ("server/auth.py", "catalog/access_keys.py"),
}
SEED = 23
COUNT = 400
LEAST = 12
"""So many mutants a stratum has at least."""
WITHOUT_EFFECT = ("_Is", "_IsNot", "_Is_Eq", "_Is_NotEq", "_IsNot_Eq", "_IsNot_NotEq")
"""Operators that exchange `==` and `is`, which for small numbers and `None` say the same."""
KEYWORD_ONLY = "*,"
"""A line of a signature, which cosmic-ray takes for a product: made a quotient, `/,`, it asks the
arguments before it by place, and no longer those behind it by name."""
MANY = 400
"""So many tests a mutant is run by at most, unless by all."""
COPIED = ("src", "lab", "tests", "scripts", "docs", "examples", "pyproject.toml", "README.md")
COPIED_TOO = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
    "mkdocs.yml",
    "LICENSE",
    "NOTICE",
    "Dockerfile",
    "compose.yaml",
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: which occurrence of what an operator changes, in which module.

    Attributes:
        stratum: A key of `STRATA`.
        module: Path of the module, from the checkout's root.
        line: Number of the changed line.
        operator: Name of cosmic-ray's operator.
        occurrence: Which of the places the operator finds in the module, from 0.
    """

    stratum: str
    module: str
    line: int
    operator: str
    occurrence: int


@dataclass(frozen=True, slots=True)
class Trace:
    """What a traced run of the fast tests saw.

    Attributes:
        seconds: How long each test took.
        by_line: The tests that executed a line, by module and line.
    """

    seconds: dict[str, float]
    by_line: dict[str, dict[int, list[str]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what has no verdict yet and print the table."""
    options = _parser().parse_args(arguments)
    trace = _read_trace()
    drawn = draw_mutants(count=options.count)
    if not options.report:
        survivors = {each for each, verdict in _read_verdicts().items() if verdict == "survived"}
        known = _read_verdicts()
        rest = [each for each in drawn if (each in survivors if options.all else each not in known)]
        _run_all(rest, trace, budget=None if options.all else options.budget)
    _print_report(drawn, _read_verdicts())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=COUNT, help="how many are drawn")
    parser.add_argument("--budget", type=float, default=8.0, help="seconds of tests a mutant")
    parser.add_argument("--all", action="store_true", help="survivors again, by all their tests")
    parser.add_argument("--report", action="store_true", help="run nothing")
    return parser


def draw_mutants(*, count: int) -> list[Mutant]:
    """Return the mutants of the seed, the same for the same sources."""
    by_stratum = {name: _list_mutants(name, paths) for name, paths in STRATA.items()}
    lines = {name: len(found) for name, found in by_stratum.items()}
    shares = {name: max(LEAST, count * held // sum(lines.values())) for name, held in lines.items()}
    largest = max(shares, key=lambda name: shares[name])
    shares[largest] += count - sum(shares.values())
    drawn: list[Mutant] = []
    for name, found in by_stratum.items():
        chance = random.Random(f"{SEED}-{name}")
        places = chance.sample(sorted(found), len(found))
        changes = (_first_that_compiles(chance.sample(found[at], len(found[at]))) for at in places)
        drawn += itertools.islice(filter(None, changes), shares[name])
    return drawn


def _first_that_compiles(mutants: Sequence[Mutant]) -> Mutant | None:
    return next((each for each in mutants if _compiles(each)), None)


def _list_mutants(stratum: str, paths: Sequence[str]) -> dict[tuple[str, int], list[Mutant]]:
    found = defaultdict(list)
    for path in paths:
        place = TRACED / PRODUCT / path
        for module in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            name = module.relative_to(TRACED).as_posix()
            for mutant in _mutants_of(stratum, name, module.read_text(encoding="utf-8")):
                found[name, mutant.line].append(mutant)
    return found


def _mutants_of(stratum: str, module: str, source: str) -> Iterator[Mutant]:
    nodes = list(ast_nodes(get_ast(source)))
    without_effect = _lines_without_effect(ast.parse(source))
    for name in operator_names():
        operator_class = get_operator(name)
        if operator_class.arguments() or name.endswith(WITHOUT_EFFECT):
            continue
        operator = operator_class()
        places = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, (line, _) in enumerate(places):
            if line not in without_effect:
                yield Mutant(stratum, module, line, name, occurrence)


def _lines_without_effect(tree: ast.Module) -> set[int]:
    """Return the lines of annotations, decorators and imports: no test can see a change there."""
    parts: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            parts += node.decorator_list
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
            parts.append(node.returns)
        if isinstance(node, ast.arg) and node.annotation:
            parts.append(node.annotation)
        if isinstance(node, ast.AnnAssign) and node.value is None:
            parts.append(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            parts.append(node)
        if isinstance(node, ast.Assign) and _is_type(node.value):
            parts.append(node)
    return {line for part in parts for line in range(part.lineno, part.end_lineno + 1)}


def _is_type(value: ast.expr) -> bool:
    """Return whether an assigned value is a union of types or a `Literal`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return isinstance(value.left, ast.Name | ast.Subscript | ast.BinOp)
    return isinstance(value, ast.Subscript) and getattr(value.value, "id", "") in {
        "Literal",
        "Callable",
    }


def _compiles(mutant: Mutant) -> bool:
    source = (TRACED / mutant.module).read_text(encoding="utf-8")
    if source.splitlines()[mutant.line - 1].strip() == KEYWORD_ONLY:
        return False
    changed = _change(mutant, source)
    if changed is None or changed == source:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # `is` with a literal
        try:
            compile(changed, mutant.module, "exec")
        except SyntaxError:
            return False
    return True


def _change(mutant: Mutant, source: str) -> str | None:
    return mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)


# The traced run.


def _read_trace() -> Trace:
    file = BUILD / "trace.json"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(_trace_tests())), encoding="utf-8")
    found = json.loads(file.read_text(encoding="utf-8"))
    by_line = {
        module: {int(line): tests for line, tests in lines.items()}
        for module, lines in found["by_line"].items()
    }
    return Trace(found["seconds"], by_line)


def _trace_tests() -> Trace:
    copy = _copy_checkout(ROOT, TRACED)
    print("Tracing the fast tests once", flush=True)
    command = ["-n", "auto", "--dist", "worksteal", "--cov=ekphory", "--cov-context=test"]
    command += ["--cov-report=", "--junitxml=junit.xml", "-o", "junit_family=xunit1"]
    done = subprocess.run([*_pytest(), *command], cwd=copy, env=_environment(copy), check=False)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"The traced run ended with status {done.returncode}.")
    seconds = {}
    for case in ElementTree.parse(copy / "junit.xml").iter("testcase"):
        if not len(case) or {part.tag for part in case} <= {"properties", "system-out"}:
            seconds[_name_test(case)] = float(case.get("time", 0))
    data = CoverageData(str(copy / ".coverage"))
    data.read()
    by_line = {}
    for file in data.measured_files():
        name = Path(file).relative_to(copy).as_posix()
        by_line[name] = {
            line: sorted({each.split("|")[0] for each in contexts if each} & seconds.keys())
            for line, contexts in data.contexts_by_lineno(file).items()
        }
    return Trace(seconds, by_line)


def _name_test(case: ElementTree.Element) -> str:
    """Return a test as pytest names it: its file, its class if it has one, its name."""
    file = case.get("file", "")
    module = file.removesuffix(".py").replace("/", ".")
    classes = case.get("classname", "").removeprefix(module).strip(".").split(".")
    return "::".join([file, *filter(None, classes), case.get("name", "")])


# Running a mutant.


def _run_all(mutants: Sequence[Mutant], trace: Trace, *, budget: float | None) -> None:
    workers = os.cpu_count() or 1
    runners: queue.Queue[Runner] = queue.Queue()
    for number in range(workers if mutants else 0):
        runners.put(Runner(_copy_checkout(TRACED, BUILD / f"worker-{number}")))

    def judge(mutant: Mutant) -> tuple[Mutant, str]:
        runner = runners.get()
        try:
            return mutant, _judge(mutant, _tests_for(mutant, trace, budget=budget), trace, runner)
        finally:
            runners.put(runner)

    started = time.monotonic()
    with (
        (BUILD / "verdicts.jsonl").open("a", encoding="utf-8") as file,
        concurrent.futures.ThreadPoolExecutor(workers) as pool,
    ):
        for done, (mutant, verdict) in enumerate(pool.map(judge, mutants), start=1):
            file.write(json.dumps({**asdict(mutant), "verdict": verdict}) + "\n")
            file.flush()
            left = (time.monotonic() - started) / done * (len(mutants) - done)
            place = f"{mutant.module.removeprefix(PRODUCT + '/')}:{mutant.line}"
            print(
                f"{done}/{len(mutants)} {verdict:9} {place} ({left / 60:.0f} min left)", flush=True
            )


def _tests_for(mutant: Mutant, trace: Trace, *, budget: float | None) -> list[str]:
    """Return the tests that execute the line, the nearest and quickest first."""
    lines = trace.by_line.get(mutant.module, {})
    tests = lines.get(mutant.line) or sorted({each for line in lines.values() for each in line})
    stem = Path(mutant.module).stem
    ordered = sorted(tests, key=lambda each: (stem not in each.split("::")[0], trace.seconds[each]))
    if budget is None:
        return ordered
    chosen, spent = [], 0.0
    for test in ordered[:MANY]:
        spent += trace.seconds[test]
        if chosen and spent > budget:
            break
        chosen.append(test)
    return chosen


def _judge(mutant: Mutant, tests: Sequence[str], trace: Trace, runner: Runner) -> str:
    """Return killed, timeout or survived; a mutant that no test executes has survived."""
    if not tests:
        return "survived"
    module = runner.copy / mutant.module
    source = (TRACED / mutant.module).read_text(encoding="utf-8")
    module.write_text(_change(mutant, source), encoding="utf-8")
    (runner.copy / "selected.txt").write_text("\n".join(tests), encoding="utf-8")
    limit = 40 + 4 * sum(trace.seconds[each] for each in tests)  # of one core
    try:
        status = runner.run(["-x", "-p", "no:cacheprovider", "@selected.txt"], seconds=limit)
    finally:
        module.write_text(source, encoding="utf-8")
    if status is None:
        return "timeout"
    output = runner.read_output()
    unreadable = status == 4 and "while loading conftest" in output
    if status not in {0, 1, 2} and not unreadable:  # 2: a test file could not be imported
        sys.stderr.write(output[-2000:])
        raise SystemExit(f"pytest ended with status {status} for {mutant}.")
    return "survived" if status == 0 else "killed"


class Runner:
    """Runs pytest in one copy of the checkout.

    Each run is a fork of a process that has imported the libraries, and nothing of the checkout.
    LanceDB is not among them: it has threads, which a fork loses.
    """

    def __init__(self, copy: Path) -> None:
        self.copy = _compile_copy(copy)
        self._process = subprocess.Popen(
            [sys.executable, "-B", "-c", _FORKING],
            cwd=copy,
            env=_environment(copy),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, arguments: Sequence[str], *, seconds: float) -> int | None:
        """Return pytest's status; None where it took more of a core, or ten times as long."""
        request = json.dumps({"arguments": [*_FORKED, *arguments], "limit": seconds})
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def read_output(self) -> str:
        """Return what the last run printed."""
        return (self.copy / "output.txt").read_text(encoding="utf-8", errors="replace")


_FORKED = ["--hypothesis-seed=0", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
"""pytest's plugins among the libraries are imported before it can rewrite their asserts."""
_FORKING = """
import json, os, resource, signal, sys, time, traceback
import fastapi, httpx, hypothesis, numpy, onnxruntime, pyarrow, pydantic, pytest, tokenizers

for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(request["limit"]), int(request["limit"]) + 5))
        output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        status = 70
        try:
            status = int(pytest.main(request["arguments"]))
        except BaseException:  # SystemExit too: the fork ends here, and never goes on with the loop
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    ends, found = time.monotonic() + 10 * request["limit"], 0
    while not found and time.monotonic() < ends:
        found, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.05)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if not found:
        os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status) if found else None
    print(json.dumps(None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code), flush=True)
"""


def _pytest() -> list[str]:
    return [sys.executable, "-B", "-m", "pytest", "--hypothesis-seed=0"]


def _environment(copy: Path) -> dict[str, str]:
    path = os.pathsep.join(str(copy / each) for each in ("src", "lab/src", "."))
    return {**os.environ, "PYTHONPATH": path}


def _copy_checkout(origin: Path, copy: Path) -> Path:
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for each in (*COPIED, *COPIED_TOO):
        source = origin / each
        if source.is_dir():
            shutil.copytree(source, copy / each, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, copy / each)
    shared = ROOT.parent / "shared"
    if shared.exists() and not (BUILD / "shared").exists():
        (BUILD / "shared").symlink_to(shared)
    return copy


def _compile_copy(copy: Path) -> Path:
    """Compile what a run imports, checked by contents, so that only the mutant is compiled then."""
    mode = ["--invalidation-mode", "checked-hash"]
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", *mode, "src", "lab/src", "scripts"],
        cwd=copy,
        check=True,
    )
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"],
        cwd=copy,
        env={**_environment(copy), "PYTHONDONTWRITEBYTECODE": ""},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return copy


# What is known.


def _read_verdicts() -> dict[Mutant, str]:
    """Return the last verdict on each mutant."""
    file = BUILD / "verdicts.jsonl"
    if not file.exists():
        return {}
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {
        Mutant(**{k: v for k, v in row.items() if k != "verdict"}): row["verdict"] for row in rows
    }


def _print_report(drawn: Sequence[Mutant], verdicts: dict[Mutant, str]) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in drawn:
        counts[mutant.stratum][verdicts.get(mutant, "not run")] += 1
        counts["all"][verdicts.get(mutant, "not run")] += 1
    print(f"{'':22} drawn killed survived not run  share killed")
    for name, count in counts.items():
        killed = count["killed"] + count["timeout"]
        judged = killed + count["survived"]
        share = f"{killed / judged:.3f}" if judged else "-"
        numbers = f"{count.total():5} {killed:6} {count['survived']:8} {count['not run']:7}"
        print(f"{name:22} {numbers}  {share}")
    for mutant in drawn:
        if verdicts.get(mutant) == "survived":
            print(f"survived: {mutant.module}:{mutant.line} {_describe(mutant)}")


def _describe(mutant: Mutant) -> str:
    source = (TRACED / mutant.module).read_text(encoding="utf-8")
    new = _change(mutant, source).splitlines()[mutant.line - 1].strip()
    return f"{source.splitlines()[mutant.line - 1].strip()}  ->  {new}"


if __name__ == "__main__":
    sys.exit(main())
