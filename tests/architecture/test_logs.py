"""Log lines: constant messages, facts as fields whose names the logging module leaves to us."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator

import pytest

from tests.architecture.sources import Module, modules

LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
RESERVED = {*vars(logging.makeLogRecord({})), "message", "asctime"}


def log_calls(module: Module) -> Iterator[ast.Call]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            logger = ast.unparse(node.func.value)
            if logger in {"log", "_log"} and node.func.attr in LEVELS:
                yield node


def facts_in(module: Module) -> Iterator[tuple[int, str]]:
    """The keys of all dictionaries that a function with log calls makes, where they are text."""
    for function in ast.walk(module.tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            is_facts = (isinstance(node, ast.keyword) and node.arg == "extra") or (
                isinstance(node, ast.Assign | ast.AnnAssign)
                and "facts" in ast.unparse(node).partition("=")[0]
            )
            if is_facts:
                for inner in ast.walk(node):
                    for key in inner.keys if isinstance(inner, ast.Dict) else ():
                        if isinstance(key, ast.Constant):
                            yield key.lineno, str(key.value)


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_no_fact_of_a_log_line_has_a_reserved_name(module: Module) -> None:
    """``logging`` raises for such a line, though only where its level is switched on."""
    assert [(line, key) for line, key in facts_in(module) if key in RESERVED] == []


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_every_log_message_is_constant(module: Module) -> None:
    messages = [call.args[0] for call in log_calls(module) if call.args]
    assert [m.lineno for m in messages if not isinstance(m, ast.Constant | ast.Attribute)] == []


def test_the_reserved_names_are_found_where_they_are_used() -> None:
    source = "def f():\n    facts = {'chat': 1, 'name': 2}\n    log.info('x', extra={'msg': 3})\n"
    module = Module("sample", modules()[0].path, ast.parse(source), 3)
    assert [key for _, key in facts_in(module) if key in RESERVED] == ["name", "msg"]
