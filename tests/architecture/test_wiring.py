"""Parts get what they need when they are built: nothing is connected afterwards."""

from __future__ import annotations

import ast

from tests.architecture.sources import modules

OF_NETWORKS = ("goclaw_py.core.net", "goclaw_py.store")
"""Where ``connect`` opens a connection."""

BOUND_STORE = "goclaw_py.records.bound"


def test_no_part_is_connected_after_it_was_built() -> None:
    found = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        if not module.name.startswith(OF_NETWORKS)
        for klass in ast.walk(module.tree)
        if isinstance(klass, ast.ClassDef)
        for node in klass.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.split("_")[0] == "connect"
    ]
    assert found == []


def test_only_the_bound_store_is_given_the_node_as_a_function() -> None:
    """Every other part asks the store that it has for the present node (docs/adr/0049)."""
    found = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        if module.name != BOUND_STORE
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Subscript)
        and ast.unparse(node).startswith(("Callable[[], NodeId]", "Callable[[], NodeId | None]"))
    ]
    assert found == []


def test_a_single_store_call_is_retried_by_the_bound_store() -> None:
    """``store.retried.settle(…)``, not ``retry_until_available(lambda: store.settle(…))``.

    By hand are retried: several steps, and calls whose node or time is that of the attempt.
    """
    found = [
        f"{module.name}:{node.lineno} {ast.unparse(node)}"
        for module in modules()
        if module.name != BOUND_STORE
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "retry_until_available"
        if is_store_call(node.args[0])
    ]
    assert found == []


def is_store_call(operation: ast.expr) -> bool:
    """Return whether an operation is one call of a store, with the same arguments each time."""
    if isinstance(operation, ast.Lambda):
        operation = operation.body
        anew = [ast.unparse(one.func) for one in ast.walk(operation) if isinstance(one, ast.Call)]
        if any(one.endswith((".now", ".node")) for one in anew):
            return False
    called = operation
    if isinstance(operation, ast.Call):
        is_partial = ast.unparse(operation.func) == "partial"
        called = operation.args[0] if is_partial else operation.func
    return isinstance(called, ast.Attribute) and ast.unparse(called.value).endswith("store")


def test_the_guard_finds_a_store_call_that_is_retried_by_hand() -> None:
    by_hand = ["lambda: self._store.names(wanted)", "partial(store.ping, 1)", "self._store.ping"]
    others = ["lambda: store.finish_run(end, node=store.node())", "lambda: self._alert(key)"]
    others += ["partial(self._claim, chat)", "lambda: self._store.open(now=self._clock.now())"]
    assert [is_store_call(ast.parse(one, mode="eval").body) for one in by_hand] == [True] * 3
    assert [is_store_call(ast.parse(one, mode="eval").body) for one in others] == [False] * 4


def test_a_record_of_dependencies_is_passed_on_as_one_thing() -> None:
    """Where it only carries arguments to one constructor, that has keywords instead."""
    records = {
        klass.name
        for module in modules()
        for klass in ast.walk(module.tree)
        if isinstance(klass, ast.ClassDef)
        and klass.name.endswith(("Deps", "Dependencies", "Equipment", "Services"))
    }
    # Its own module, the one that makes it, and at least two that use it.
    named = {name: sum(name in module.path.read_text() for module in modules()) for name in records}
    assert {name: number for name, number in named.items() if number < 4} == {}
    assert records
