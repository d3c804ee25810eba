"""``goclaw nodes``: what it prints, and what it refuses (SPEC NODE-1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.cli.exits import ExitCode
from goclaw_py.core.errors import NodeSilent
from goclaw_py.core.ids import NodeId
from goclaw_py.records import NodeState
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.web import fake_nodes

DRAINED = ("ask", fake_nodes.HERE.id, '{"what": "drain"}')


def test_nodes_are_listed_with_how_they_are(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("nodes", "list")
    assert got.code == 0
    head, *lines = got.out.splitlines()
    assert head.split()[:4] == ["NODE", "HOST", "PID", "RELEASE"]
    assert [line.split()[0] for line in lines] == ["0190-here", "0191-drains", "0192-dead"]
    words = [line.split() for line in lines]
    assert words[0][1:4] == ["*", "alpha", "41"]
    assert words[0][-4:] == ["live", "2", "5", "telegram/default"]
    assert words[1][-4:] == ["draining", "1", "0", "nothing"]
    assert words[2][-4:] == ["expired", "0", "0", "nothing"]
    found = goclaw.data("nodes", "list")
    assert (found["here"], len(found["nodes"])) == (fake_nodes.HERE.id, 3)
    gateway.control.cluster.found.clear()
    assert "goclaw run" in goclaw("nodes", "list").out


def test_a_node_is_shown_and_drained(goclaw: Shell, gateway: ThreadGateway) -> None:
    out = goclaw("nodes", "show", "drains").out
    assert "expires in 5 s" in out
    assert "5 min ahead of the database" in " ".join(out.split())
    assert "expired" in goclaw("nodes", "show", "dead").out
    assert goclaw.data("nodes", "show", "here")["state"]["places"] == ["telegram/default"]
    # What it has otherwise than the one that is asked is shown.
    other = NodeState(settings={"lanes": "0", "queue": "1"})
    gateway.control.cluster.found.append(
        replace(fake_nodes.HERE, id=NodeId("0193-other"), release="0.9", state=other)
    )
    words = "node 0190-here has release 1.0 and other settings: [lanes], [queue]"
    assert words in " ".join(goclaw("nodes", "show", "other").out.split())
    assert "differs" not in goclaw("nodes", "show", "here").out
    # A part of its id is enough.
    got = goclaw("nodes", "drain", "here", "--yes")
    assert (got.code, "pid 41" in got.out) == (0, True)
    assert gateway.control.calls[-1] == DRAINED
    assert goclaw.data("nodes", "drain", "here", "--yes")["id"] == fake_nodes.HERE.id
    gateway.control.failure = NodeSilent("node 0190-here does not answer; it may still do it")
    got = goclaw("nodes", "drain", "here", "--yes")
    assert got.code != 0
    assert "does not answer" in got.err


def test_a_node_is_not_drained_without_a_question(goclaw: Shell, gateway: ThreadGateway) -> None:
    """The question says if nothing is left that answers."""
    alone = "It is the only gateway: nothing will be answered until one starts."
    for more, words in ((), alone), ((replace(fake_nodes.HERE, id=NodeId("0193-other")),), ""):
        gateway.control.cluster.found += more
        got = goclaw("nodes", "drain", "here")
        assert got.code == ExitCode.USAGE
        assert "shut down node 0190-here (alpha, pid 41)?" in got.err
        assert (alone in got.err) == bool(words)
    assert DRAINED not in gateway.control.calls


@pytest.mark.parametrize(
    ("name", "words"), [("019", "not unique"), ("dead", "no live node"), ("x", "no live node")]
)
def test_unclear_nodes(goclaw: Shell, gateway: ThreadGateway, name: str, words: str) -> None:
    got = goclaw("nodes", "drain", name)
    assert got.code != 0
    assert words in got.err
    assert got.err.count("\n") == 1
