"""Plant small faults in the product, one at a time, and tell which ones the tests find.

``make faults`` calls it, for example with ``ARGS="--count 50 --only goclaw_py/runs --seed 7"``. The
same seed plants the same faults, so two runs tell whether a change of the tests lost something.
A fault that nothing finds is either equivalent to the code as it is, or a test that is missing.
All quick tests run once to note which reach which lines; for a fault only those that reach it run.
The product is copied to a temporary folder first: the tree stays as it is.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.tools.reached import FOLDER, Reached

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("goclaw_py", "channels")
MOST_S = 120.0
"""How long the tests of a fault may take together, in the time they took when lines were noted."""
MOST_LINES = 12
"""A statement of several lines may be noted at a line before that of the fault."""
NOT_COPIED = (".venv", ".git", ".mypy_cache", ".ruff_cache", ".hypothesis", "__pycache__")
SILENT = ("log.", "_log.", "self._log.")
"""Calls that begin so are not dropped: what they write is mostly for people."""

_PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
)
SWAPS = dict(_PAIRS) | {second: first for first, second in _PAIRS}


@dataclass(frozen=True, slots=True)
class Fault:
    """One small change of a module. ``path`` is relative to the root folder."""

    path: str
    line: int
    kind: str
    begin: int
    """Where ``before`` stands in the module, in bytes."""
    before: str
    after: str

    def __str__(self) -> str:
        before, after = (" ".join(text.split())[:60] for text in (self.before, self.after))
        return f"{self.path}:{self.line}  {self.kind}: {before} -> {after}"

    def plant(self, source: bytes) -> bytes:
        end = self.begin + len(self.before.encode())
        return source[: self.begin] + self.after.encode() + source[end:]


@dataclass(frozen=True, slots=True)
class Verdict:
    fault: Fault
    found_by: str
    """Empty if no test failed."""
    seconds: float

    def __str__(self) -> str:
        state = "found" if self.found_by else "NOT FOUND"
        return f"{state:9}  {self.seconds:5.1f} s  {self.fault}  [{self.found_by}]"


def faults_in(path: str, source: bytes) -> Iterator[Fault]:
    """Every fault that can be planted in a module, in the order of its lines."""
    lines = source.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    for node, kind, after in _changes(ast.parse(source)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        yield Fault(path, node.lineno, kind, begin, source[begin:end].decode(), after)


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """A node, the name of the change, and the text that takes its place."""
    for node in _executed(tree):
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield test, "negate", f"(not ({ast.unparse(test)}))"
            case ast.Compare(ops=[operator]):
                yield node, "compare", _with(node, ops=[SWAPS[type(operator)]()])
            case ast.BoolOp(op=operator):
                yield node, "and/or", _with(node, op=SWAPS[type(operator)]())
            case ast.BinOp(op=ast.Add() | ast.Sub() as operator):
                yield node, "plus/minus", _with(node, op=SWAPS[type(operator)]())
            case ast.Constant(value=bool(value)):
                yield node, "flip", str(not value)
            case ast.Constant(value=int(value)):
                yield node, "number", str(value + 1)
            case ast.Return(value=ast.expr()) if ast.unparse(node) != "return None":
                yield node, "return None", "return None"
            case ast.Expr(value=ast.Call() | ast.Await()) if not ast.unparse(node).startswith(
                SILENT
            ):
                yield node, "drop", "pass"


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but annotations, decorators, and what only type checkers read."""
    if isinstance(node, ast.JoinedStr):
        return  # Python 3.11 does not tell where its parts stand.
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_for_types(child):
                yield child
                yield from _executed(child)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _with(node: ast.expr, **fields: object) -> str:
    return f"({ast.unparse(type(node)(**(vars(node) | fields)))})"


def sample(faults: Iterable[Fault], count: int, seed: int) -> list[Fault]:
    """As many of each package as of any other, as long as it has so many."""
    by_package = defaultdict(list)
    for fault in faults:
        by_package["/".join(fault.path.split("/")[:2])].append(fault)
    chance = random.Random(seed)
    for group in by_package.values():
        chance.shuffle(group)
    groups = [by_package[name] for name in sorted(by_package)]
    chosen: list[Fault] = []
    while len(chosen) < count and any(groups):
        chosen += [group.pop() for group in groups if group]
    return chosen[:count]


def all_faults(only: Sequence[str] = ()) -> Iterator[Fault]:
    for package in PRODUCT:
        for file in sorted((ROOT / package).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            if not only or path.startswith(tuple(only)):
                yield from faults_in(path, file.read_bytes())


def files_for(fault: Fault, reached: Reached) -> list[str]:
    """The files with tests to run, for ``MOST_S``: those that reach the line.

    First those that name the module, which are made for it, then the quickest. Lines that run at
    the import of a module belong to no test: then all that name it, or reach others of its lines.
    """
    lines = range(fault.line, max(fault.line - MOST_LINES, 0), -1)
    near = next(filter(None, (reached.files.get((fault.path, n), set()) for n in lines)), set())
    naming = set(_importing(fault.path))
    others = (files for (path, _), files in reached.files.items() if path == fault.path)
    files = near or naming.union(*others)
    ranked = sorted(files, key=lambda file: (file not in naming, reached.seconds[file], file))
    until = accumulate(reached.seconds[file] for file in ranked)
    return [file for file, at_s in zip(ranked, until, strict=True) if at_s <= MOST_S] or ranked[:1]


def _importing(path: str) -> Iterator[str]:
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package, _, name = module.rpartition(".")
    words = (module, f"from {package} import {name}")
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        if any(word in file.read_text(encoding="utf-8") for word in words):
            yield file.relative_to(ROOT).as_posix()


def reached_in(tree: Path) -> Reached:
    """Run all quick tests once."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-n", "auto"]
    command += ["--dist", "loadfile", "-p", "tests.tools.reached"]
    with tempfile.TemporaryDirectory(prefix="goclaw-reached-") as folder:
        env = os.environ | {"PYTHONPATH": str(tree), FOLDER: folder}
        subprocess.run(command, cwd=tree, env=env, stdout=sys.stderr, check=False)
        return Reached.read(Path(folder), tree)


def judge(fault: Fault, tests: Sequence[str], tree: Path, limit_s: float) -> Verdict:
    """Plant a fault in a copy of the product, run tests and take it out again."""
    file, begun = tree / fault.path, time.monotonic()
    sound = file.read_bytes()
    file.write_bytes(fault.plant(sound))
    try:
        found = _failure(tests, tree, limit_s) if tests else ""
    finally:
        file.write_bytes(sound)
    return Verdict(fault, found, time.monotonic() - begun)


def _failure(tests: Sequence[str], tree: Path, limit_s: float) -> str:
    """The first test that fails, ``time limit``, or nothing."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "--tb=no", *tests]
    env = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": ""}
    with subprocess.Popen(
        command,
        cwd=tree,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "time limit"
    if process.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return ""
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else f"exit code {process.returncode}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each fault as it is judged, then how many were found."""
    options = argparse.ArgumentParser(prog="make faults", description=__doc__)
    options.add_argument("--count", type=int, default=400, help="how many faults (default: 400)")
    options.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    options.add_argument("--only", nargs="+", default=(), help="in files whose path begins so")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    options.add_argument(
        "--limit", type=float, default=180.0, help="seconds for the tests of a fault"
    )
    options.add_argument("--list", action="store_true", help="print the faults, plant none")
    chosen = options.parse_args(arguments)
    faults = sample(all_faults(chosen.only), chosen.count, chosen.seed)
    if chosen.list:
        print(*faults, sep="\n")
        return 0
    found = 0
    with tempfile.TemporaryDirectory(prefix="goclaw-faults-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        copies = [Path(folder, str(number)) for number in range(chosen.jobs)]
        for copy in copies:
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
            trees.put(copy)
        reached = reached_in(copies[0])

        def work(fault: Fault) -> Verdict:
            tree = trees.get()
            try:
                files = files_for(fault, reached)
                without = [f"--deselect={name}" for name in sorted(reached.failed)]
                return judge(fault, [*files, *without] if files else [], tree, chosen.limit)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(chosen.jobs) as pool:
            for verdict in pool.map(work, faults):
                found += bool(verdict.found_by)
                print(verdict, flush=True)
    print(f"found {found} of {len(faults)} faults")
    return 0


if __name__ == "__main__":
    sys.exit(main())
