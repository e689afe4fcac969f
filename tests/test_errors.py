"""Every exception of the package is one of its tree."""

import importlib
import inspect
import pkgutil

import ekphory
from ekphory.errors import EkphoryError

NEEDS_AN_EXTRA = ("torch", "sentence_transformers", "ray")


def exceptions():
    for found in pkgutil.walk_packages(ekphory.__path__, "ekphory."):
        try:
            module = importlib.import_module(found.name)
        except ImportError as error:
            assert error.name is None or error.name.startswith(NEEDS_AN_EXTRA), found.name
            continue
        for each in vars(module).values():
            if inspect.isclass(each) and issubclass(each, BaseException):
                yield each


def test_every_exception_of_the_package_is_of_its_tree():
    own = {each for each in exceptions() if each.__module__.startswith("ekphory.")}
    assert len(own) > 25
    assert [each for each in own if not issubclass(each, EkphoryError)] == []
