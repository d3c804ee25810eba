"""Nodes, for layers that must know of them before they load their routes or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.operations.declare import Noun
from goclaw_py.operations.nodes.operations import Nodes

NODES: Final = Noun("nodes", Nodes, plain={"Node": "host release", "NodeState": "places settings"})
