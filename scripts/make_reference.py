"""Writes docs/reference: python -m scripts.make_reference.

The pages of the environment variables and of the command line are made from the code; a test
compares them with what stands there. Needs ekphory-lab, whose commands are among the others.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from typer.models import ArgumentInfo, CommandInfo, ParameterInfo

from ekphory.agent.configuration import KEYS, SECTION
from ekphory.agent.provider import AgentSettings
from ekphory.cli.app import app
from ekphory.cli.command import spread
from ekphory.cli.options import FileOutputOptions, OutputOptions, StoreOptions
from ekphory.config import PREFIX, Settings

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
MADE = "<!-- Made by `python -m scripts.make_reference`; change the code that it reads. -->"
VARIABLE = re.compile(rf"\b{PREFIX}[A-Z][A-Z_]*[A-Z]\b")
READ_FOR_VARIABLES = ("src/**/*.py", "lab/src/**/*.py", "compose.yaml", "Dockerfile")

# The page of environment variables.

GROUPS = {
    "Store and scope": ("store", "api_key", "org", "project", "agent", "user", "session"),
    "Embedder": ("embedder",),
    "Reranker and preset": ("reranker", "preset"),
    "Chat model": ("chat", "extraction"),
    "Server": ("serve", "audit"),
    "Recorded searches": ("record",),
    "Retrieval agent": ("config",),
    "Command line": ("daemon",),
}
"""Heading: what the fields of `Settings` below it begin with."""
IDS = {
    "llm_model": "The language model of the provider `openai`: its id in the section "
    "`resources.language_models` of the file that `EKPHORY_CONFIG` names.",
    "reranker": "What orders the evidence, given the chain: its id in the section "
    "`resources.rerankers`. By default the reranker of the search, where it has one.",
}
"""Keys of the agent whose variable holds the id of what `AgentSettings` holds."""
ELSEWHERE = {
    "EKPHORY_PORT": "The port on the host that `compose.yaml` publishes the server at; by default "
    "8080.",
}
"""Variables that no Python code reads."""


def environment_page() -> str:
    """Return the page of all environment variables."""
    said = descriptions(Settings)
    parts = [
        MADE,
        "# Environment variables",
        "What a command line or a call says goes before its variable. Blanks around a value do "
        "not count, and an empty variable counts as one that is not set. `Memory(…)` in Python "
        "takes the store, the scope, the models and the preset as arguments.",
    ]
    for heading, starts in GROUPS.items():
        names = [field.name for field in fields(Settings) if field.name.startswith(starts)]
        rows = [(f"`{PREFIX}{name.upper()}`", said[name]) for name in names]
        parts += [f"## {heading}", table(("variable", "meaning"), rows)]
        if heading == "Retrieval agent":
            parts += _agent_section()
    parts += [
        "## Compose file",
        table(("variable", "meaning"), [(f"`{name}`", told) for name, told in ELSEWHERE.items()]),
    ]
    return "\n\n".join(parts) + "\n"


def _agent_section() -> list[str]:
    said = descriptions(AgentSettings) | IDS
    defaults = {field.name: field.default for field in fields(AgentSettings)}
    rows = [
        (f"`{agent_variable(key)}`", said[key], _default_of_setting(defaults[key])) for key in KEYS
    ]
    return [
        "The variables of the agent go before the same keys of that file's section "
        f"`{SECTION}` ([how the agent is configured](../agent.md#configuration)). A value "
        "`$NAME` or `${NAME}` is read from the variable of that name.",
        table(("variable", "meaning", "default"), rows),
    ]


def agent_variable(key: str) -> str:
    """Return the name of the variable of a key of the agent's section."""
    return f"{PREFIX}{SECTION.upper()}_{key.upper()}"


def _default_of_setting(value: object) -> str:
    if value is None or value is MISSING:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def descriptions(owner: type) -> dict[str, str]:
    """Return what the docstring of a dataclass says of each of its fields."""
    attributes = inspect.cleandoc(owner.__doc__ or "").partition("Attributes:\n")[2]
    said: dict[str, str] = {}
    for entry in re.split(r"\n    (?=\S)", "\n" + attributes)[1:]:
        names, _, text = entry.partition(": ")
        said |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return said


def variables_on_the_page() -> set[str]:
    """Return the names of all variables that the page tells of."""
    of_settings = {PREFIX + field.name.upper() for field in fields(Settings)}
    return of_settings | {agent_variable(key) for key in KEYS} | set(ELSEWHERE)


def variables_in_code() -> set[str]:
    """Return the names of variables that stand in the code, the compose file or the Dockerfile."""
    paths = [path for pattern in READ_FOR_VARIABLES for path in ROOT.glob(pattern)]
    return {name for path in paths for name in VARIABLE.findall(path.read_text(encoding="utf-8"))}


# The page of the command line.


@dataclass(frozen=True, slots=True)
class Command:
    """A command as its page shows it.

    Attributes:
        name: What a user types, from `ekphory` on.
        panel: The heading under which the help lists it.
        info: How it was registered.
    """

    name: str
    panel: str
    info: CommandInfo

    @property
    def function(self) -> Callable[..., Any]:
        """The function that it runs."""
        if self.info.callback is None:
            raise ValueError(f"{self.name} runs nothing")
        return self.info.callback


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or an option of a command.

    Attributes:
        names: Its names, `-k, --k`, or for an argument none.
        value: What stands for its value, such as `FILE`; empty for a switch.
        help: What the help says of it.
        required: Whether a command line must give it.
        default: What holds without it, as text; empty where nothing is to be said.
    """

    names: str
    value: str
    help: str
    required: bool
    default: str

    @property
    def shown(self) -> str:
        """The names and the value as on a command line."""
        return " ".join(part for part in (self.names, self.value) if part)


def _scoped(where: StoreOptions) -> None: ...


def _reporting(output: OutputOptions) -> None: ...


def _reporting_to_a_file(output: FileOutputOptions) -> None: ...


SHARED = {
    "Options of the store and scope": _scoped,
    "Options of the output": _reporting,
    "Options of the report": _reporting_to_a_file,
}
"""Heading: a function that takes the options which are described below it, once for all."""


def command_line_page() -> str:
    """Return the page of all commands, their arguments and their options."""
    root = app.registered_callback
    parts = [
        MADE,
        "# Command line",
        described(None if root is None else root.callback),
        "`ekphory COMMAND --help` shows the same. `eval`, `train`, `bench` and `bench-server` come "
        "with the package `ekphory-lab`. What a command line does not say is read from the "
        "[environment](environment.md).",
    ]
    for heading, options in shared_options().items():
        parts += [f"## {heading}", _table_of("option", options)]
    found = list(commands(app, "ekphory", ""))
    for panel in dict.fromkeys(command.panel for command in found):
        parts.append(f"## {panel}")
        for command in found:
            if command.panel == panel:
                parts += _of_a_command(command)
    return "\n\n".join(parts) + "\n"


def commands(application: typer.Typer, name: str, panel: str) -> Iterator[Command]:
    """Yield the commands of an application and of its groups."""
    for info in application.registered_commands:
        own = info.rich_help_panel
        yield Command(f"{name} {info.name}", own if isinstance(own, str) else panel, info)
    for group in application.registered_groups:
        if group.typer_instance is not None:
            own = group.rich_help_panel
            inner = own if isinstance(own, str) else panel
            yield from commands(group.typer_instance, f"{name} {group.name}", inner)


def shared_options() -> dict[str, list[Parameter]]:
    """Return the options that most commands share, by the heading above them."""
    return {
        heading: [read_parameter(option) for option in spread(function).parameters.values()]
        for heading, function in SHARED.items()
    }


def _of_a_command(command: Command) -> list[str]:
    signature = inspect.signature(command.function)
    given = [read_parameter(parameter) for parameter in signature.parameters.values()]
    arguments = [parameter for parameter in given if not parameter.names]
    options = [parameter for parameter in given if parameter.names]
    needed = [option.shown for option in options if option.required]
    usage = [command.name, *needed, "[OPTIONS]", *(argument.value for argument in arguments)]
    links = []
    for heading, shared in shared_options().items():
        if all(option in options for option in shared):
            options = [option for option in options if option not in shared]
            links.append(
                f"[{heading[0].lower()}{heading[1:]}](#{heading.lower().replace(' ', '-')})"
            )
    parts = [
        f"### {command.name}",
        described(command.function),
        f"```\n{' '.join(usage)}\n```",
        f"Example:\n\n```\n{(command.info.epilog or '').removeprefix('Example: ')}\n```",
    ]
    if arguments:
        parts.append(_table_of("argument", arguments))
    if options:
        parts.append(_table_of("option", options))
    if links:
        parts.append(f"It takes the {' and the '.join(links)}{' too' if options else ''}.")
    return parts


def _table_of(heading: str, given: Sequence[Parameter]) -> str:
    rows = [(f"`{entry.shown}`", entry.help, entry.default) for entry in given]
    return table((heading, "meaning", "default"), rows)


def described(function: Callable[..., Any] | None) -> str:
    """Return the docstring of a command's function as Markdown."""
    return as_markdown(inspect.getdoc(function) or "")


def as_markdown(text: str) -> str:
    """Return a help text with what Markdown would read in it escaped, save for code."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([*<])", r"\\\1", piece) for piece in pieces
    )


def read_parameter(parameter: inspect.Parameter) -> Parameter:
    """Return a parameter of a command's function as the command line has it."""
    kind, info = get_args(parameter.annotation)[:2]
    required = parameter.default is inspect.Parameter.empty
    many, inner = _inner_kind(kind)
    told = as_markdown(" ".join((info.help or "").split()))
    if isinstance(info, ArgumentInfo):
        value = info.metavar or parameter.name.upper()
        value = value if required or value.startswith("[") else f"[{value}]"
        return Parameter("", value + ("..." if many else ""), told, required, "")
    is_switch = inner is bool
    value = "" if is_switch else info.metavar or _placeholder(inner)
    if required:
        told += " Required."
    default = "" if required else _default(parameter.default)
    return Parameter(_names(parameter.name, info, is_switch), value, told, required, default)


def _names(name: str, info: ParameterInfo, is_switch: bool) -> str:  # noqa: FBT001
    # In `Annotated`, typer takes the first name that is given for a default.
    first = (info.default,) if isinstance(info.default, str) else ()
    given = [*first, *(info.param_decls or ())]
    if given:
        return ", ".join(sorted(given, key=len))
    long = name.replace("_", "-")
    return f"--{long}, --no-{long}" if is_switch else f"--{long}"


def _inner_kind(kind: Any) -> tuple[bool, Any]:  # noqa: ANN401  an annotation
    """Return whether a type is a list, and the type of one value of it, without None."""
    if get_origin(kind) is list:
        return True, get_args(kind)[0]
    others = [part for part in get_args(kind) if part is not type(None)]
    if get_origin(kind) is not Literal and len(others) == 1:
        return _inner_kind(others[0])
    return False, kind


def _placeholder(kind: Any) -> str:  # noqa: ANN401  an annotation
    if get_origin(kind) is Literal:
        return "{" + ",".join(get_args(kind)) + "}"
    return {int: "INTEGER", float: "NUMBER", Path: "PATH"}.get(kind, "TEXT")


def _default(value: object) -> str:
    if value is None or value is False or value == ():
        return ""
    if isinstance(value, bool):
        return "on"
    return f"`{value}`"


# Tables, and the files themselves.


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; a last column that says nothing is left out."""
    columns = len(header)
    if columns > 2 and not any(row[-1] for row in rows):
        columns -= 1
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line[:columns]) + " |"
        for line in lines
    )


PAGES: dict[str, Callable[[], str]] = {
    "environment.md": environment_page,
    "command_line.md": command_line_page,
}


def main() -> None:
    """Write all pages."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
