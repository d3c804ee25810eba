"""Where each value of the settings comes from (SPEC OPS-1)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.config import load
from goclaw_py.config.origins import key_lines
from goclaw_py.ports.settings import OriginKind


# ---------------------------------------------------------------------------- lines of a file
@pytest.mark.parametrize(("text", "lines"), [
    ("", {}),
    ("# only [this]\n\n", {}),
    ("a = 1", {("a",): 1}),
    ("\n[t] # x\na = 1\n b.c = 2\n[u.v]\na = 3\n",
     {("t", "a"): 3, ("t", "b", "c"): 4, ("u", "v", "a"): 6}),
    ("a = { b = 1, c = { d = 2 } }\ne = {}", {("a", "b"): 1, ("a", "c", "d"): 1, ("e",): 2}),
    ('a = """\n[t]\nb = 1\n"""\nc = 2', {("a",): 1, ("c",): 5}),
    ("a = '''\n# '''\nb = [\n 1, # ]\n 2,\n]\nc = 3", {("a",): 1, ("b",): 3, ("c",): 7}),
    ('[t."a.b"]\n"c d" = 1', {("t", "a.b", "c d"): 2}),
    ("[[l]]\na = 1\n[[l]]\na = 2\n[l.m]\nb = 1\n[t]\na = 1", {("l",): 1, ("t", "a"): 8}),
    ("a = 1\r\nb = 2\r\n", {("a",): 1, ("b",): 2}),
    ('a = "\u2028"\nb = 1', {("a",): 1, ("b",): 2}),
])  # fmt: skip
def test_each_value_has_the_line_at_which_it_begins(
    text: str, lines: dict[tuple[str, ...], int]
) -> None:
    tomllib.loads(text)
    assert key_lines(text) == lines


keys = st.sampled_from(["a", "b", "c-d", '"e.f"', '"g h"'])
values = st.sampled_from(
    ["1", '"x"', "true", "[1, 2]", "[\n  1,\n  # ]\n  2,\n]", '"""\n[no]\nx = 1\n"""', "'''\n\n'''"]
)
blanks = st.sampled_from(["", "# [x]\n", "\n\n", "  # a = 1\n"])


@given(st.lists(st.tuples(blanks, keys, values), max_size=6, unique_by=lambda each: each[1]))
def test_the_line_of_a_value_is_where_its_key_was_written(
    written: list[tuple[str, str, str]],
) -> None:
    text, expected = "[t]\n", {}
    for blank, key, value in written:
        text += blank
        expected[("t", key.strip('"'))] = text.count("\n") + 1
        text += f"{key} = {value}\n"
    tomllib.loads(text)
    assert key_lines(text) == expected


# ---------------------------------------------------------------------------- layers


LANES = ("main", "subagent", "delegate", "cron")
sizes = st.dictionaries(st.sampled_from(LANES), st.integers(1, 99))


@given(sizes, sizes)
def test_a_value_is_the_one_that_stands_where_its_origin_says(
    in_file: dict[str, int], in_env: dict[str, int]
) -> None:
    """The loader and what is told of it must not drift apart."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "goclaw.toml"
        file.write_text("[lanes]\n" + "".join(f"{k} = {v}\n" for k, v in in_file.items()))
        env = {f"GOCLAW_LANE_{key.upper()}": str(value) for key, value in in_env.items()}
        got = load(None, {"GOCLAW_HOME": name, **env})
        lines = file.read_text().splitlines()
        for lane in LANES:
            origin = got.place(("lanes", lane, "size"))
            match origin.kind:
                case OriginKind.ENVIRONMENT:
                    said = env[origin.words.removeprefix("environment variable ")]
                case OriginKind.FILE:
                    where, _, line = origin.words.rpartition(":")
                    assert where == str(file)
                    said = lines[int(line) - 1].rpartition("= ")[2]
                case _:
                    said = str({"main": 2, "subagent": 4, "delegate": 100, "cron": 1}[lane])
                    assert lane not in in_file.keys() | in_env.keys()
            assert got.lanes[lane].size == int(said)
