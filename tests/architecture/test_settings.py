"""Every setting has an effect: what is read from the file is used somewhere."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module

import goclaw_py.config
from goclaw_py.config.types import Section
from tests.architecture.sources import modules


def sections(of: type[Section] = Section) -> Iterator[type[Section]]:
    for one in of.__subclasses__():
        yield one
        yield from sections(one)


@cache
def attributes() -> frozenset[str]:
    """The names of all attributes that the product reads."""
    return frozenset(
        node.attr
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


def unused(section: type[Section]) -> set[str]:
    """Its keys that nothing reads, but for secrets, which are read by the name of the key."""
    fields = section.model_fields.items()
    secrets = {name for name, field in fields if "SecretStr" in str(field.annotation)}
    by_name = {f"{name}{way}" for name in secrets for way in ("", "_file", "_env")}
    return section.model_fields.keys() - attributes() - by_name


def test_every_setting_is_read_by_the_product() -> None:
    """The recipe "Add a setting" in CONTRIBUTING.md relies on this."""
    for module in pkgutil.iter_modules(goclaw_py.config.__path__):
        import_module(f"goclaw_py.config.{module.name}")
    found = [one for one in sections() if one.__module__.startswith("goclaw_py.")]
    assert len(found) > 20
    assert {f"{one.__name__}.{name}" for one in found for name in unused(one)} == set()


def test_a_setting_without_effect_is_found() -> None:
    class Lonely(Section):
        hardly_a_name_of_anything: int = 0

    assert unused(Lonely) == {"hardly_a_name_of_anything"}
