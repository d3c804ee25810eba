"""A gateway that crashed during a run, as others find it: its rows, written by the store itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from goclaw_py.core.ids import MAIN_LANE, AgentName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.run_steps import ValueStep
from goclaw_py.records import NewInbox, NewRun, Node, RunSoFar
from goclaw_py.store.postgres import PostgresStore
from tests.ledger import agent
from tests.ledger.wire import socket_folder


async def leave_run(
    state: Path, number: int, chat: str, message_id: int, *, now: datetime, lease: timedelta
) -> None:
    """Let another node accept a message, begin its run, finish a step, and crash."""
    target = Target("telegram", "default", chat)
    session, main = SessionKey(f"agent:main:telegram:direct:{chat}"), AgentName("main")
    message = InboundMessage(
        external_id=f"{chat}:crashed-{number}",
        target=target,
        peer=PeerKind.DIRECT,
        sender=Sender(chat, "Ann", None),
        text=f"{agent.LOOKS_UP} the weather",
        sent_at=now,
        message_id=str(message_id),
    )
    node = Node(NodeId(f"crashed-{number}"), "elsewhere", 1, "", now, now + lease)
    run = RunId(f"crashed-{number}")
    store = await PostgresStore.open(
        host=str(socket_folder(state)), user="goclaw", database="goclaw", max_size=1
    )
    try:
        await store.join(node)
        accepted = await store.accept([NewInbox(message, session, main)], node=node.id, now=now)
        rows = tuple(row.id for row in accepted.rows)
        new = NewRun(run, session, main, Trigger.CHAT, MAIN_LANE, rows, target, now)
        await store.begin_run(new, node=node.id)
        steps = (ValueStep(agent.STEP, '"sunny"'),)
        await store.note_run(run, RunSoFar(steps=steps), node=node.id)
    finally:
        await store.close()
    if not rows:
        raise RuntimeError("the session of the chat was not free")
