"""The files of queries."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import goclaw_py.store
from goclaw_py.records import RunFilter
from goclaw_py.store.postgres import pool
from goclaw_py.store.sql import parse, queries
from tests.support.statement_arguments import sample_arguments

STORE = Path(goclaw_py.store.__file__).parent
FILES = sorted(path.stem for path in (STORE / "queries").glob("*.sql"))


def test_a_file_is_split_by_name() -> None:
    text = "-- About.\n\n-- name: one\n-- Promise.\nselect 1;\n\n-- name: two\nselect 2;\n"
    assert parse(text) == {"one": "-- Promise.\nselect 1", "two": "select 2"}


def test_a_part_takes_the_place_of_its_name() -> None:
    text = "-- part: shown\n-- All.\nselect *;\n\n-- name: one\n-- use: shown\nfrom a;\n"
    assert parse(text) == {"one": "-- All.\nselect *\nfrom a"}


def test_a_part_has_parameters_of_its_own() -> None:
    new = "-- part: new\nb > $1\n"
    all_ = "-- part: all\na = $1 and\n-- use: new from $2\n"
    text = f"{new}{all_}-- name: one\nwhere x = $2 and\n-- use: all from $3\n"
    assert parse(text) == {"one": "where x = $2 and\na = $3 and\nb > $4"}


def test_a_name_used_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        parse("-- name: one\nselect 1;\n-- name: one\nselect 2;\n")


@pytest.mark.parametrize("file", FILES)
def test_every_query_says_what_it_promises(file: str) -> None:
    for name, query in queries(file).items():
        assert re.match(r"-- [A-Z].*\.", query, re.DOTALL), name


@pytest.mark.parametrize("file", FILES)
def test_no_query_reads_the_servers_clock(file: str) -> None:
    for name, query in queries(file).items():
        if (file, name) == ("nodes", "time"):
            continue  # it is what all nodes set their clocks by
        assert not re.search(r"\bnow\(\)|current_timestamp|clock_timestamp", query), name


def test_each_field_of_a_filter_of_runs_has_a_sample() -> None:
    """With null for a new field, no test would notice that a list reads all runs."""
    samples = [text for name, text in sample_arguments().items() if name.startswith("records.new")]
    for number, one in enumerate(fields(RunFilter), 5):
        given = [values[number] for text in samples if len(values := text.split(", ")) > number]
        assert {*given} - {"null", "null)"}, (
            f"records.newest_filtered in statement_arguments.txt: give {one.name} a value of few "
            "runs; if test_postgres_statistics then fails, it needs an index and a statement"
        )


def test_every_query_is_used_and_every_used_one_exists() -> None:
    used: set[tuple[str, str]] = set()
    for path in (STORE / "postgres").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tables = {
            node.targets[0].id: node.value.args[0].value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "queries"
            and isinstance(node.value.args[0], ast.Constant)
        }
        used |= {
            (str(tables[node.value.id]), str(node.slice.value))
            for node in ast.walk(tree)
            if isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in tables
            and isinstance(node.slice, ast.Constant)
        }
    assert used == {(file, name) for file in FILES for name in queries(file)}


def test_types_of_arrays_are_looked_up_when_a_connection_opens() -> None:
    """Otherwise each new connection asks the catalog once more, at the first such statement."""
    texts = [file.read_text("utf-8") for file in (STORE / "queries").glob("*.sql")]
    used = {name for text in texts for name in re.findall(r"::(\w+)\[\]", text)}
    assert used - {"text"} <= set(re.findall(r"::(\w+)\[\]", pool._ARRAYS))
