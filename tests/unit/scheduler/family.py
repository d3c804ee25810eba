"""Runs that ask for others, for the tests of who works in whose slot."""

from __future__ import annotations

from tests.unit.scheduler.shell import Shell, told


def one_slot(**fields: object) -> Shell:
    """A run in the only slot of lane ``main``."""
    shell = Shell({"main": 1})
    shell.submit("run", "chat", **fields)
    return shell


def ask(shell: Shell, run_id: str, parent: str, session: str = "", **fields: object) -> list[str]:
    """A run asks for another one and waits for it, in a session of its own if none is named."""
    session = session or f"session of {run_id}"
    return told(shell.submit(run_id, session, parent=parent, awaited=True, **fields))
