import inspect
from dataclasses import dataclass
from typing import Annotated

from ekphory.cli.command import gather, spread


@dataclass(frozen=True)
class Size:
    width: Annotated[int, "in pixels"]
    height: Annotated[int, "in pixels"] = 10


def draw(name: Annotated[str, "a title"], size: Size, colour: str = "red") -> None: ...


def test_a_group_is_spread_into_its_fields():
    assert [
        (name, parameter.annotation, parameter.default)
        for name, parameter in spread(draw).parameters.items()
    ] == [
        ("name", Annotated[str, "a title"], inspect.Parameter.empty),
        ("width", Annotated[int, "in pixels"], inspect.Parameter.empty),
        ("height", Annotated[int, "in pixels"], 10),
        ("colour", str, "red"),
    ]


def test_flat_values_are_gathered_into_the_group():
    given = {"name": "box", "width": 3, "height": 4, "colour": "blue"}
    assert gather(draw, given) == {"name": "box", "size": Size(3, 4), "colour": "blue"}
