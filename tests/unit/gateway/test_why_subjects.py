"""What people call the things that they ask about (SPEC OPS-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import NodeId, RunId
from goclaw_py.core.messages import PeerKind, Sender, Target
from goclaw_py.core.session_keys import DirectPolicy, GroupPolicy
from goclaw_py.records import NewRun
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of
from tests.support.heartbeat_gateway import heartbeat_gateway
from tests.support.jobs import IN_CHAT, Wanted, every, make
from tests.support.why import ask
from tests.unit.chat.access.test_pairing import code_in

QUIET = heartbeat_gateway(interval=None).heartbeats
WAYS = Ways(QueuePolicy(), QueuePolicy(), groups=GroupPolicy.OPEN, heartbeats=QUIET)
GROUP = "-100200"


@pytest.fixture
async def gateway() -> AsyncIterator[GatewayProcess]:
    """One with a person, a group and a job."""
    async with a_process(ways=WAYS, channels=(RecordingChannel(trusted=False),)) as made:
        await made.control.people.approve(code_in(await made.ask("hello", "100")), guest=False)
        await asyncio.sleep(5)
        spoken = message("hi", chat=GROUP, sender="100", peer=PeerKind.GROUP)
        heard = replace(spoken, place_name="Family", message_id="45", external_id=f"{GROUP}:45")
        await made.gateway.accept([heard])
        await asyncio.sleep(1)
        await make(made, Wanted(every(3600), slug="report"))
        yield made


KEY = session_of("100")
GROUP_KEY = session_of(GROUP, peer=PeerKind.GROUP)


@pytest.mark.parametrize(("about", "subject"), [
    (KEY, KEY), ("direct:100", KEY), (" telegram:100 ", "telegram:100"),
    ("person:telegram/default/100", "person:telegram/default/100"),
    (GROUP, f"telegram:{GROUP}"), ("Family", f"telegram:{GROUP}"),
    ("fam", f"telegram:{GROUP}"), (f"telegram:{GROUP}/45", "message:2"),
    ("https://t.me/c/200/45", "message:2"), ("t.me/c/200/7/45", "message:2"),
    ("message:1", "message:1"), ("inbox:1", "message:1"),
    ("delivery:2", "delivery:2"), ("outbox:2", "delivery:2"), ("2", "delivery:2"),
    ("main", "heartbeat:main"), ("heartbeat:main", "heartbeat:main"),
])  # fmt: skip
async def test_things_have_these_names(gateway: GatewayProcess, about: str, subject: str) -> None:
    assert str((await ask(gateway, about)).subject) == subject


async def test_a_person_is_found_by_name_and_a_job_is_not_their_chat() -> None:
    """OPS-4: also one whom the settings allow, and while a job writes to their chat."""
    async with a_process() as made:
        await made.gateway.accept([replace(message("hi", chat="7"), sender=Sender("7", "Dave"))])
        await asyncio.sleep(60)
        job = await make(
            made, Wanted(every(60), slug="report", target=Target("telegram", "default", "7"))
        )
        await asyncio.sleep(600)
        assert [one for one in await made.store.sessions() if one.key.endswith(f"cron:{job.id}")]
        for name in ("Dave", "dave", "dav"):
            found = await ask(made, name)
            assert str(found.subject) == "telegram:7"
            assert found.chain[0].words.startswith("received from Dave")
        for name in ("Dave", "telegram:7"):
            assert (await made.control.sessions.get(name)).key == session_of("7")


async def test_runs_jobs_and_nodes_are_found_by_their_names(gateway: GatewayProcess) -> None:
    (run, _) = await gateway.store.runs()
    for about in (run.id, f"run:{run.id}"):
        assert (await ask(gateway, about)).subject.id == run.id
    for about in ("report", "REPORT", "job:report"):
        assert (await ask(gateway, about)).subject.kind == "job"
    assert (await ask(gateway, f"node:{gateway.node()}")).subject.id == gateway.node()


async def test_a_whole_id_wins_over_longer_ones(gateway: GatewayProcess) -> None:
    (node,) = await gateway.store.nodes()
    await gateway.store.join(replace(node, id=NodeId(f"{node.id}0")))
    assert (await ask(gateway, f"node:{node.id}")).subject.id == node.id
    assert (await ask(gateway, node.id)).subject.id == node.id
    with pytest.raises(NotFound, match="may mean"):
        await ask(gateway, f"node:{node.id[:-1]}")


async def test_a_whole_id_of_any_form_is_found(gateway: GatewayProcess) -> None:
    """As an operator copies it from a list, a page or a log."""
    (run, *_) = await gateway.store.runs()
    (node,) = await gateway.store.nodes()
    # Ids of other programs, such as those of an imported history.
    for name in ("run-000000012", "z"):
        begun = NewRun(RunId(name), KEY, run.agent, run.trigger, run.lane, (), None, run.started_at)
        await gateway.store.begin_run(begun, node=gateway.node())
        for about in (name, f"run:{name}"):
            assert (await ask(gateway, about)).subject.id == name
    await gateway.store.join(replace(node, id=NodeId("n1")))
    assert (await ask(gateway, "n1")).subject.id == "n1"
    with pytest.raises(NotFound, match="nothing is called"):
        await ask(gateway, "run-00000001")


async def test_what_may_mean_several_things_lists_them(gateway: GatewayProcess) -> None:
    with pytest.raises(NotFound, match="may mean several things:\n  agent:main:telegram"):
        await ask(gateway, "telegram")


async def test_a_number_is_that_of_a_delivery_and_names_the_incoming_message(
    gateway: GatewayProcess,
) -> None:
    found = await ask(gateway, "1")
    assert str(found.subject) == "delivery:1"
    assert found.cures[-1].command == "goclaw why message:1"
    assert found.cures[-1].words == "Another message has this number"


async def test_jobs_of_two_owners_with_one_name_are_told_apart(gateway: GatewayProcess) -> None:
    job = await make(gateway, Wanted(every(60), slug="report"), IN_CHAT)
    with pytest.raises(NotFound, match=f"job:{job.id}"):
        await ask(gateway, "report")
    assert (await ask(gateway, f"job:{job.id}")).subject.id == job.id


@pytest.mark.parametrize(("about", "words"), [
    ("famly", "Did you mean 'Family'"), ("reprot", "Did you mean 'report'"),
    ("zzz", "nothing is called 'zzz': no conversation, chat, person"),
    ("telegram:100/9999", "see: goclaw why telegram:100"),
    ("https://t.me/c/300/1", "there is no message 1 of telegram:-100300"),
    ("message:77", "nothing is called 'message:77'"), ("run:ffff", "nothing is called 'run:ffff'"),
    ("a\nb", "control characters"), ("x" * 513, "a name of 1 to 512 characters"),
    ("9" * 40, "nothing is called"), ("\ud800", "control characters"),
])  # fmt: skip
async def test_unknown_names_are_refused(gateway: GatewayProcess, about: str, words: str) -> None:
    with pytest.raises(NotFound) as told:
        await ask(gateway, about)
    assert words in str(told.value)
    assert "goclaw " not in told.value.text, "pages show it, and have links in place of commands"


async def test_a_chat_that_was_never_heard_is_explained_by_the_settings() -> None:
    """SPEC CHAN-5."""
    ways = replace(WAYS, access=DirectPolicy.DISABLED)
    async with a_process(ways=ways, channels=(RecordingChannel(trusted=False),)) as made:
        assert (await ask(made, "telegram:5")).code == "chat.direct_disabled"
        assert (await ask(made, "telegram:-5")).code == "chat.unheard"
        assert (await ask(made, "irc:5")).code == "chat.no_account"
