"""Log lines: constant names of events, facts as fields whose names ``logging`` leaves to us."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterator

import pytest

from tests.architecture.sources import ROOT, Module, modules

LEVELS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log"}
EVENT = re.compile("[a-z][a-z0-9_]*")
RESERVED = {*vars(logging.makeLogRecord({})), "message", "asctime"}


def log_calls(module: Module) -> Iterator[ast.Call]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            logger = ast.unparse(node.func.value)
            if logger in {"log", "_log", "logger"} and node.func.attr in LEVELS:
                yield node


def event_of(call: ast.Call) -> str | None:
    """The name that a line has whatever it is about; None if it has none."""
    match call.args:
        case [ast.Constant(str(name))] if EVENT.fullmatch(name):
            return name
        case _:
            return None


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


def test_no_fact_of_a_log_line_has_a_reserved_name() -> None:
    """``logging`` raises for such a line, though only where its level is switched on."""
    facts = [(module.name, line, key) for module in modules() for line, key in facts_in(module)]
    assert [fact for fact in facts if fact[2] in RESERVED] == []


def test_every_log_line_has_the_constant_name_of_an_event() -> None:
    """Lines with values in their text can be neither grouped nor alerted on."""
    calls = [(module.name, call) for module in modules() for call in log_calls(module)]
    assert [(name, ast.unparse(call)) for name, call in calls if event_of(call) is None] == []


def test_the_guide_names_events_that_exist() -> None:
    guide = (ROOT / "docs/guide/logs.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ((?:`[a-z0-9_]+`,? )+)\|", guide.partition("## Events")[2], re.MULTILINE
    )
    told = {name for row in rows for name in re.findall(r"\w+", row)}
    written = {event_of(call) for module in modules() for call in log_calls(module)}
    assert len(told) > 20
    assert told - written == set()


@pytest.mark.parametrize(
    "line", ["log.info('a run ended')", "log.info('run_%s', x)", "log.info(x)", "log.info(f'a{x}')"]
)
def test_what_is_no_name_of_an_event_is_found(line: str) -> None:
    (call,) = log_calls(Module("sample", modules()[0].path, ast.parse(line), 1))
    assert event_of(call) is None


def test_the_reserved_names_are_found_where_they_are_used() -> None:
    source = "def f():\n    facts = {'chat': 1, 'name': 2}\n    log.info('x', extra={'msg': 3})\n"
    module = Module("sample", modules()[0].path, ast.parse(source), 3)
    assert [key for _, key in facts_in(module) if key in RESERVED] == ["name", "msg"]
