"""``goclaw heartbeat`` and ``goclaw event``: how heartbeats stand, and what is done with them.

SPEC HB-9, HB-11, HB-13, OPS-1, OPS-4, SEC-1.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from goclaw_py.cli.context import STORED_ONLY
from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import HeartbeatError, StoreUnavailable
from goclaw_py.core.ids import AgentName
from goclaw_py.core.targets import Route
from goclaw_py.operations.heartbeats.command import commands as heartbeat_run
from goclaw_py.operations.heartbeats.command import show
from goclaw_py.schedule.heartbeat.active_hours import ActiveHours
from goclaw_py.schedule.heartbeat.chat_texts import mute_too_long, unknown_duration
from goclaw_py.schedule.heartbeat.models import HeartbeatRun, HeartbeatRunStatus, NoHeartbeat, Skip
from goclaw_py.schedule.heartbeat.mute import LONGEST_MUTE
from goclaw_py.schedule.heartbeat.status_texts import why
from goclaw_py.schedule.heartbeat.views import OPERATOR, DryRunReport
from tests.unit.cli.conftest import Done, Shell, ThreadGateway, lines
from tests.unit.web.fake_heartbeats import AT, CHAT, HELPER, MAIN, OK, RUNNING, FakeHeartbeats, view
from tests.unit.web.fakes import FakeControl

HERE = replace(OPERATOR, zone="UTC")
NO_GATEWAY = f"{STORED_ONLY}\n"


@pytest.fixture
def service(database: FakeControl) -> FakeHeartbeats:
    """No gateway, and a database with two heartbeats."""
    return database.hearts


@pytest.fixture
def hand(database: FakeControl, monkeypatch: pytest.MonkeyPatch) -> FakeHeartbeats:
    """A gateway, seen as directly; a heartbeat run by hand is looked at without pause."""
    monkeypatch.setattr(heartbeat_run, "_LOOK_EVERY_S", 0.001)
    database.gateway = True
    return database.hearts


# ---------------------------------------------------------------------------- status


def test_the_status_of_all_is_a_table(goclaw: Shell, service: FakeHeartbeats) -> None:
    got = goclaw("heartbeat", "status")
    head, main, helper = lines(got.out)
    assert (got.code, got.err) == (0, NO_GATEWAY)
    assert head == "AGENT STATE NEXT RUN LAST RUN OUTCOME ALERTS TO TODAY MONTH"
    assert main == (
        "main on, every 30 minutes, 08:00\u201322:00 Europe/Berlin Tue 2026-03-03 08:27:00 (in 27 "
        "min) Tue 2026-03-03 07:30:00 (30 min ago) completed to telegram.work:-1005:7 (the chat "
        "used last[2J) $0.0123 $0.0246"
    )
    assert helper.split()[0] == "helper"
    assert " delivery failed " in helper


def test_the_status_of_one_has_its_last_runs(goclaw: Shell, service: FakeHeartbeats) -> None:
    got = goclaw("heartbeat", "status", "main")
    facts, _, heartbeat_runs = got.out.partition("\n\n")
    assert got.code == 0
    assert "last       today 07:30 (Tue 08:30 in Europe/Berlin): Nothing needed" in facts
    assert "next       none until a gateway runs here" in facts
    assert "alerts     to telegram.work:-1005:7" in facts
    assert "used       today (UTC): $0.0123 (1,200 tokens), of at most $1.00 a day" in facts
    head, skipped, ok = lines(heartbeat_runs)
    assert head == "STARTED TRIGGER TOOK OUTCOME ATTEMPTS DELIVERY COST RESULT REPLY"
    assert skipped == (
        "2026-03-03 07:30:00 schedule skipped: unreadable "
        "HEARTBEAT.md could not be read: it is a folder 2 ok[2J"
    )
    assert ok.startswith(
        "2026-03-03 07:30:00 schedule 1 min completed 1 $0.0123 nothing needed attention"
    )


def test_nothing_stored_takes_the_terminal_over(goclaw: Shell, service: FakeHeartbeats) -> None:
    commands = (["status"], ["status", "main"], ["why"], ["logs"], ["show"], ["run", "--dry-run"])
    for command in commands:
        got = goclaw("heartbeat", *command)
        assert got.code == 0
        assert not {"\x1b", "\u202e"} & set(got.out), command


def test_programs_get_what_the_api_answers(goclaw: Shell, service: FakeHeartbeats) -> None:
    one = goclaw.data("heartbeat", "status", "main")
    both = goclaw.data("heartbeat", "status")
    assert both[0] == one
    assert [each["heartbeat"]["agent"] for each in both] == ["main", "helper"]
    assert (one["on"], tuple(one["why"])) == (True, why(view(MAIN)))
    assert goclaw.data("heartbeat", "why", "main") == one
    logged = [one["id"] for one in goclaw.data("heartbeat", "logs")]
    assert logged == ["019b-skipped", "019b-ok", "019b-dead"]
    shown = goclaw.data("heartbeat", "show")
    assert set(shown) == {"text", "items", "version"}
    assert shown["items"][0]["number"] == 1
    assert goclaw.data("heartbeat", "events") == []
    assert goclaw.data("heartbeat", "run", "--dry-run")["status"] == "running"


# ---------------------------------------------------------------------------- why, logs


def test_why_says_it_in_two_lines(goclaw: Shell, service: FakeHeartbeats) -> None:
    found = goclaw("heartbeat", "why").out.splitlines()
    assert (found[0], found[3], found[4]) == ("main", "", "helper")
    assert len(found) == 7
    del service.views[HELPER]
    assert tuple(goclaw("heartbeat", "why").out.splitlines()) == why(service.views[MAIN], HERE)
    service.views[MAIN] = replace(view(MAIN), route=Route(None, "x", "nobody has spoken to it"))
    got = goclaw("heartbeat", "why", "main")
    assert (got.code, tuple(got.out.splitlines())) == (0, why(service.views[MAIN], HERE))
    assert got.out.endswith("Alerts cannot be sent: nobody has spoken to it.\n")


def test_times_are_in_the_zone_of_this_machine(
    goclaw: Shell, service: FakeHeartbeats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists beside its sentences are in it, too; the zone of the heartbeat is what people typed."""
    assert service.views[MAIN].policy.zone == "Europe/Berlin"
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    for command in ("why", "on"):
        out = " ".join(goclaw("heartbeat", command, "main").out.split())
        assert "today 13:57 (Tue 09:27 in Europe/Berlin), in 27 min." in out


def test_logs_are_of_all_or_of_one_and_by_outcome(goclaw: Shell, service: FakeHeartbeats) -> None:
    every = lines(goclaw("heartbeat", "logs").out)
    assert [line.split()[0] for line in every] == ["AGENT", "main", "main", "helper"]
    assert every[3].endswith(
        "could not be delivered to telegram.work:-1005:7: bot was blocked by the user[2J"
    )
    assert " event " in every[3]
    assert len(lines(goclaw("heartbeat", "logs", "main").out)) == 3
    assert len(lines(goclaw("heartbeat", "logs", "--limit", "1").out)) == 2
    by = goclaw("heartbeat", "logs", "--outcome", "skipped:unreadable")
    assert len(lines(by.out)) == 2
    assert "no matching heartbeat runs" in goclaw("heartbeat", "logs", "--outcome", "lost").out
    # Those of an agent that is gone are in UTC.
    service.heartbeat_runs = [replace(OK, agent=AgentName("gone"))]
    assert "gone   2026-03-03 07:30:00" in goclaw("heartbeat", "logs").out
    statuses = {*HeartbeatRunStatus, "completed"} - {
        HeartbeatRunStatus.SKIPPED,
        HeartbeatRunStatus.OK,
    }
    assert set(show.OUTCOMES) == statuses | {f"skipped:{skip}" for skip in Skip}


# ---------------------------------------------------------------------------- run


S = HeartbeatRunStatus


def came_to(status: S, skip: Skip | None = None, **facts: object) -> list[HeartbeatRun]:
    ended = replace(OK, id=RUNNING.id, status=status, skip=skip, **facts)  # type: ignore[arg-type]
    return [RUNNING, RUNNING, ended]


@pytest.mark.parametrize(("coming", "code", "words"), [
    (came_to(S.OK), 0, "completed (1 min, $0.0123): nothing needed attention"),
    (came_to(S.ALERTED, detail="x"), 0, "alerted (1 min, $0.0123): it had"),
    (came_to(S.DUPLICATE), 0, "duplicate"),
    (came_to(S.SKIPPED, Skip.EMPTY, started_at=None), 0, "skipped ($0.0123): HEARTBEAT.md had"),
    (came_to(S.SKIPPED, Skip.NO_FILE), 0, "skipped (1 min, $0.0123): there was no HEARTBEAT.md"),
    (came_to(S.SKIPPED, Skip.NOTHING_DUE), 0, "skipped (1 min, $0.0123): no item of"),
    (came_to(S.SKIPPED, Skip.BUDGET), 1, "skipped (1 min, $0.0123): the daily budget"),
    (came_to(S.SKIPPED, Skip.DISABLED), 1, "skipped (1 min, $0.0123): the heartbeat was off"),
    (came_to(S.SKIPPED, Skip.UNREADABLE), 1, "skipped (1 min, $0.0123): HEARTBEAT.md could not"),
    (came_to(S.FAILED, detail="no key"), 1, "failed (1 min, $0.0123): it failed: no"),
    (came_to(S.LOST), 1, "lost"),
    (came_to(S.CANCELLED), 1, "cancelled"),
    (came_to(S.NO_ROUTE), 1, "no route ("),
    (came_to(S.ALERTED, delivery="failed"), 1, "delivery failed ("),
])  # fmt: skip
def test_a_heartbeat_run_by_hand_is_waited_for_and_its_end_is_the_exit_code(
    goclaw: Shell, hand: FakeHeartbeats, coming: list[HeartbeatRun], code: int, words: str
) -> None:
    hand.coming = coming
    got = goclaw("heartbeat", "run")
    assert (got.code, got.err) == (code, "")
    assert got.out.startswith(words)
    assert hand.calls[-4:].count(("heartbeat_run", RUNNING.id)) >= 3


SAID = "**HEARTBEAT_OK**\nThe backup is *missing*.\nLook at it\x1b[2J."


@pytest.mark.parametrize(("status", "reply", "facts"), [
    (S.ALERTED, SAID, {"detail": "x"}),
    (S.ALERTED, SAID, {"delivery": "failed"}),
    (S.DUPLICATE, SAID, {}),
    (S.NO_ROUTE, SAID, {}),
    (S.FAILED, SAID, {}),
    (S.OK, SAID, None),
    (S.FAILED, "", None),
    (S.FAILED, "HEARTBEAT_OK", None),
])  # fmt: skip
def test_what_the_agent_had_to_say_is_below_the_outcome(
    goclaw: Shell, hand: FakeHeartbeats, status: S, reply: str, facts: dict[str, object] | None
) -> None:
    """SPEC HB-6: without the token. ``facts`` None: it had nothing to say."""
    hand.coming = came_to(status, None, reply=reply, **facts or {})
    out = goclaw("heartbeat", "run").out
    if facts is None:
        assert "Reply:" not in out
        return
    said = out.partition("Reply:\n")[2]
    assert said.splitlines() == ["The backup is *missing*.", "Look at it[2J."]
    assert "HEARTBEAT_OK" not in out


def test_the_log_ends_with_what_was_said(goclaw: Shell, service: FakeHeartbeats) -> None:
    service.heartbeat_runs = [replace(OK, reply=SAID), replace(OK, reply="word " * 1000), OK]
    head, said, long, silent = lines(goclaw("heartbeat", "logs", "main").out)
    assert head.endswith(" RESULT REPLY")
    assert said.endswith(" was sent The backup is *missing*. Look at it[2J.")
    assert long.endswith("\u2026")
    assert len(long) < 400
    assert silent.endswith(" was sent")


def switched_off_by_the_settings(service: FakeHeartbeats) -> None:
    seen = view(MAIN)
    service.views[MAIN] = replace(seen, heartbeat=replace(seen.heartbeat, interval=None))


def test_what_the_settings_switch_off_stays_off(goclaw: Shell, hand: FakeHeartbeats) -> None:
    switched_off_by_the_settings(hand)
    hand.report = DryRunReport(S.SKIPPED, Skip.DISABLED, "", "", Route(CHAT))
    hand.coming = came_to(S.SKIPPED, Skip.DISABLED)
    for options in ([], ["--dry-run"]):
        out = goclaw("heartbeat", "run", *options).out
        assert OPERATOR.off_by_settings in out
        assert "heartbeat on" not in out
    got = goclaw("heartbeat", "on")
    assert (got.code, got.err) == (1, f"goclaw: {OPERATOR.off_by_settings}\n")
    assert goclaw.data("heartbeat", "on")["on"] is False
    assert goclaw("heartbeat", "auto").code == 0


@pytest.mark.parametrize("options", [[], ["--no-wait"], ["--json"]])
def test_a_run_by_hand_of_a_heartbeat_that_is_off_is_refused_at_once(
    goclaw: Shell, hand: FakeHeartbeats, options: list[str]
) -> None:
    """SPEC HB-11: nothing is started or waited for."""
    switched_off_by_the_settings(hand)
    got = goclaw("heartbeat", "run", *options)
    said = '"skipped:disabled"' if options == ["--json"] else OPERATOR.off_by_settings
    assert (got.code, got.err, said in got.out) == (1, "", True)
    assert ("run_now", MAIN) not in hand.calls
    seen = hand.views[MAIN]
    hand.views[MAIN] = replace(
        seen, heartbeat=replace(seen.heartbeat, interval=timedelta(hours=1), switched=False)
    )
    assert ("heartbeat on" in goclaw("heartbeat", "run").out) is True


def test_what_people_switched_off_can_be_switched_on(goclaw: Shell, hand: FakeHeartbeats) -> None:
    hand.coming = came_to(S.SKIPPED, Skip.DISABLED)
    assert "goclaw heartbeat on" in goclaw("heartbeat", "run").out


def test_a_heartbeat_is_waited_for_until_it_is_sent(goclaw: Shell, hand: FakeHeartbeats) -> None:
    pending, sent = (came_to(S.ALERTED, delivery=one)[-1] for one in ("waiting", "sent"))
    hand.coming = [RUNNING, pending, pending, sent]
    got = goclaw("heartbeat", "run", "--json")
    assert (got.code, json.loads(got.out)["delivery"]) == (0, "sent")
    hand.coming = [RUNNING]
    got = goclaw("heartbeat", "run", "--wait", "0.01")
    assert got.code == 1
    assert got.err == "goclaw: still in progress; see: goclaw heartbeat runs main\n"


def test_a_heartbeat_not_waited_for_is_only_begun(goclaw: Shell, hand: FakeHeartbeats) -> None:
    got = goclaw("heartbeat", "run", "helper", "--no-wait")
    assert (got.code, got.out) == (0, f"{RUNNING.id}\n")
    assert ("run_now", HELPER) in hand.calls
    assert not any(call[0] == "heartbeat_run" for call in hand.calls)
    begun = {"status": "running", "heartbeat_run": RUNNING.id}
    assert goclaw.data("heartbeat", "run", "--no-wait") == begun


@pytest.mark.parametrize(("refused", "code", "words"), [
    (NoHeartbeat.ALREADY_RUNNING, 1, "a heartbeat run is already in progress"),
    (NoHeartbeat.OFF, 3, "no gateway is running here"),
])  # fmt: skip
def test_a_heartbeat_run_that_cannot_begin_says_why(
    goclaw: Shell, hand: FakeHeartbeats, refused: NoHeartbeat, code: int, words: str
) -> None:
    hand.hand = refused
    assert goclaw("heartbeat", "run") == Done(code, "", f"goclaw: {words}\n")
    got = goclaw("heartbeat", "run", "--json")
    assert (got.code, json.loads(got.out)) == (code, {"status": refused.value})


def test_a_run_that_waits_for_its_turn_is_told_from_one_in_progress(
    goclaw: Shell, hand: FakeHeartbeats
) -> None:
    hand.hand = NoHeartbeat.ALREADY_RUNNING
    current = replace(RUNNING, status=HeartbeatRunStatus.DEFERRED, detail="")
    hand.views[MAIN] = replace(hand.views[MAIN], current=current)
    got = goclaw("heartbeat", "run")
    assert got.code == 1
    assert " is waiting: someone is talking to the agent." in got.err


def test_a_dry_run_runs_nothing(goclaw: Shell, service: FakeHeartbeats) -> None:
    got = goclaw("heartbeat", "run", "--dry-run")
    assert (got.code, got.out.splitlines()) == (
        0,
        [
            "It would ask its agent.",
            "An alert would go to telegram.work:-1005:7.",
            "The agent would read:",
            "- look at the mail",
            "- [2J",
        ],
    )
    service.report = DryRunReport(S.SKIPPED, Skip.BUDGET, "", "", Route(None, "x"))
    assert goclaw("heartbeat", "run", "--dry-run").out.startswith(
        "It would be skipped: the daily budget "
    )
    assert not any(call[0] == "run_now" for call in service.calls)


# ---------------------------------------------------------------------------- on, off, mute


@pytest.mark.parametrize(("word", "switched"), [("on", True), ("off", False), ("auto", None)])
def test_a_heartbeat_is_switched(
    goclaw: Shell, service: FakeHeartbeats, word: str, switched: bool | None
) -> None:
    got = goclaw("heartbeat", word, "helper")
    assert (got.code, got.err) == (0, NO_GATEWAY)
    assert service.views[HELPER].heartbeat.switched is switched
    state, ahead = got.out.splitlines()
    if word == "off":
        assert state.startswith("helper: off")
        assert ahead.startswith("No run is planned")
    else:
        assert state.startswith("helper: on, every 30 minutes")
        assert ahead.startswith("The next run is due today 08:27")
    assert goclaw.data("heartbeat", word)["on"] is (word != "off")


@pytest.mark.parametrize(("given", "until"), [
    (["2h"], AT + timedelta(hours=2)),
    (["90m"], AT + timedelta(minutes=90)),
    (["1h30m"], AT + timedelta(minutes=90)),
    (["2", "hours"], AT + timedelta(hours=2)),
    (["for 2 Hours"], AT + timedelta(hours=2)),
    (["365d"], AT + timedelta(days=365)),
    (["until", "18:00"], AT + timedelta(hours=9)),
    (["until tomorrow 9:00"], AT + timedelta(days=1)),
    (["off"], None),
    (["OFF"], None),
])  # fmt: skip
def test_a_heartbeat_is_muted_in_its_zone(
    goclaw: Shell, service: FakeHeartbeats, given: list[str], until: object
) -> None:
    assert goclaw("heartbeat", "mute", *given).code == 0
    assert service.views[MAIN].heartbeat.muted_until == until


@pytest.mark.parametrize("given", [["2h", "helper"], ["2h", "--agent", "helper"]])
def test_the_agent_to_mute_is_named_last(
    goclaw: Shell, service: FakeHeartbeats, given: list[str]
) -> None:
    assert goclaw("heartbeat", "mute", *given).code == 0
    until = AT + timedelta(hours=2)
    assert service.views[HELPER].heartbeat.muted_until == until
    assert service.views[MAIN] == view(MAIN)


@pytest.mark.parametrize(("given", "said"), [
    *((words, "") for words in (["soon"], ["0s"], ["2"], ["h"], [""], ["until"])),
    *((["until", day + " 09:00"], "") for day in ("2020-01-01", "2030-01-01")),
    *((words, "") for words in (["2h", "nobody"], ["helper"], ["9" * 40 + "h"], ["\x1b[2J"])),
    # SPEC CMD-5: it says how a duration is written, without commands of the chat.
    (["2", "parsecs"], unknown_duration("2 parsecs")),
    (["366d"], mute_too_long(LONGEST_MUTE)),
])  # fmt: skip
def test_a_wrong_duration_mutes_nothing(
    goclaw: Shell, service: FakeHeartbeats, given: list[str], said: str
) -> None:
    got = goclaw("heartbeat", "mute", *given)
    assert (got.code, got.out) == (2, "")
    assert "\x1b" not in got.err
    assert service.views[MAIN] == view(MAIN)
    if said:
        assert got.err == f"goclaw: {said}\n"
        assert "/" not in got.err


# ---------------------------------------------------------------------------- the checklist


def test_items_are_listed_added_and_ticked_off(goclaw: Shell, service: FakeHeartbeats) -> None:
    mail = "1 each run look at the mail[2J"
    assert lines(goclaw("heartbeat", "show").out) == ["ITEM EVERY TEXT", mail]
    got = goclaw("heartbeat", "add", "every", "2h: is the build green?")
    assert lines(got.out)[2] == "2 every 2h is the build green?"
    ticked = lines(goclaw("heartbeat", "done", "1").out)
    assert (ticked[0], ticked[2]) == (
        "done: look at the mail[2J",
        "1 every 2h is the build green?",
    )
    goclaw("heartbeat", "add", "--agent", "helper", "x")
    assert goclaw("heartbeat", "done", "1", "helper", "--json").code == 0
    goclaw("heartbeat", "add", "--agent", "helper", "x")
    assert service.texts == {MAIN: ["every 2h: is the build green?"], HELPER: ["x"]}
    assert goclaw("heartbeat", "show", "helper", "--file").out == "- [ ] x\n"


def test_an_interval_that_is_not_understood_is_a_warning(
    goclaw: Shell, service: FakeHeartbeats
) -> None:
    """SPEC HB-3. Each run checks such an item, which nobody would notice."""
    got = goclaw("heartbeat", "add", "every two hours: is the build green?")
    assert got.err.startswith("warning: the interval is not understood, so each run checks")
    assert "every 2h" in got.err
    for impossible in ("weekdays 25:00: foo", "mondays 9:60: foo", "daily 24:30: foo"):
        assert goclaw("heartbeat", "add", impossible).err == got.err
    assert goclaw("heartbeat", "add", "every 2 hours: is it?").err == ""
    assert goclaw("heartbeat", "add", "weekdays 23:00: is it?").err == ""
    assert goclaw("heartbeat", "add", "every build is green").err == ""
    assert "-- before a text" in goclaw("heartbeat", "add", "- look").err


def test_an_item_that_is_open_is_not_added_again(goclaw: Shell, service: FakeHeartbeats) -> None:
    goclaw("heartbeat", "add", "look at the backup")
    got = goclaw("heartbeat", "add", " look  at the", "backup ")
    assert (got.code, len(service.texts[MAIN])) == (0, 2)
    assert lines(got.out)[0] == "item 2 already exists: look at the backup"
    assert len(lines(got.out)) == 4
    # Programs get only the checklist on standard output.
    again = goclaw("heartbeat", "add", "look at the backup", "--json")
    assert (len(json.loads(again.out)["items"]), again.err) == (2, f"{lines(got.out)[0]}\n")
    done = goclaw("heartbeat", "done", "2", "--json")
    assert (len(json.loads(done.out)["items"]), done.err) == (1, "done: look at the backup\n")
    assert "already" not in goclaw("heartbeat", "add", "look at the backup").out
    assert len(service.texts[MAIN]) == 2
    assert goclaw("heartbeat", "show", "helper").out == "HEARTBEAT.md has no open items\n"


# ---------------------------------------------------------------------------- events


def test_an_event_is_told_and_waits(goclaw: Shell, service: FakeHeartbeats) -> None:
    got = goclaw("event", "the build", "is red")
    assert (got.code, got.err) == (0, NO_GATEWAY)
    assert got.out.splitlines()[0] == "main reads the event in its next heartbeat run."
    woken = goclaw("event", "x", "--now", "--agent", "helper")
    said = "helper reads the event now, in a heartbeat run."
    assert (woken.code, woken.out.splitlines()[0]) == (0, said)
    assert [call[1:] for call in service.calls if call[0] == "add_event"] == [
        (MAIN, "the build is red", False),
        (HELPER, "x", True),
    ]
    _, row = lines(goclaw("heartbeat", "events").out)
    assert row == "2026-03-03 08:00:00 the build is red"
    assert goclaw.data("event", "y")["text"] == "y"
    for _ in range(18):
        assert goclaw("event", "x").code == 0
    full = "goclaw: 20 events wait for the next heartbeat run of main; no more are taken\n"
    assert goclaw("event", "x") == Done(1, "", full)


@pytest.mark.parametrize(("heartbeat", "policy", "reason"), [
    ({"switched": False}, {}, "the heartbeat was turned off"),
    ({"interval": None}, {}, "the heartbeat is off in the settings"),
    ({"muted_until": AT + timedelta(hours=2)}, {}, "the heartbeat is muted until today 10:00"),
    ({}, {"hours": ActiveHours(22 * 60, 23 * 60, "UTC")}, "its active hours are 22:00"),
    ({}, {"day": Budget(tokens=1)}, "the daily budget is used up"),
])  # fmt: skip
def test_an_event_now_waits_if_its_run_is_skipped(
    goclaw: Shell,
    service: FakeHeartbeats,
    heartbeat: dict[str, Any],
    policy: dict[str, Any],
    reason: str,
) -> None:
    there = service.views[HELPER]
    service.views[HELPER] = replace(
        there,
        heartbeat=replace(there.heartbeat, **heartbeat),
        policy=replace(there.policy, **policy),
    )
    said = goclaw("event", "x", "--now", "--agent", "helper").out
    assert said.startswith(f"helper does not read the event now: {reason}")
    said = goclaw("event", "x", "--agent", "helper").out
    assert said.startswith("helper reads the event in its next heartbeat run.\n")


# ---------------------------------------------------------------------------- whose


def test_without_main_the_only_agent_is_meant(goclaw: Shell, service: FakeHeartbeats) -> None:
    del service.views[MAIN]
    assert goclaw("event", "x").out.startswith("helper ")
    service.views[AgentName("third")] = view(AgentName("third"))
    assert goclaw("event", "x") == Done(2, "", "goclaw: name an agent: helper, third\n")
    service.views.clear()
    assert goclaw("event", "x").code == 2
    assert goclaw("heartbeat", "status").out == "no agents\n"


@pytest.mark.parametrize(("arguments", "code", "words"), [
    *(
        (["heartbeat", verb, "nobody"], 1, "there is no agent 'nobody'")
        for verb in ("status", "why", "logs", "run", "on", "show")
    ),
    (["heartbeat", "run", "a\x1b[2J", "--dry-run"], 1, "there is no agent 'a\\x1b[2J'"),
    (["event", "x", "--agent", "nobody"], 1, "there is no agent 'nobody'"),
    (["heartbeat", "status", " "], 2, "must not be blank"),
    (["heartbeat", "status", "\udcff"], 2, "is not text"),
    (["heartbeat", "logs", "--outcome", "skipped"], 2, "must be one of completed, running"),
    (["heartbeat", "logs", "--limit", "0"], 2, "--limit"),
    (["heartbeat", "logs", "--limit", "1001"], 2, "--limit"),
    (["heartbeat", "run", "--wait", "-1"], 2, "--wait"),
    (["heartbeat", "run", "--wait", "nan"], 2, "--wait"),
    (["heartbeat", "done", "0"], 2, "N"),
    (["heartbeat", "done", "x"], 2, "N"),
    (["heartbeat", "done", "7"], 1, "there is no item 7"),
    (["heartbeat", "add", " "], 1, "this one says nothing"),
    (["heartbeat", "add", "x" * 501], 1, "at most 500 characters"),
    (["heartbeat", "add", "\udcff"], 2, "is not text"),
    (["heartbeat", "add"], 2, "TEXT"),
    (["event", "  "], 2, "an event needs a text"),
    (["event", "x" * 4001], 2, "at most 4000 characters"),
    (["event", "x" * 10_000_000], 2, "at most 4000 characters"),
    (["event", "\udcff"], 2, "is not text"),
    (["event"], 2, "TEXT"),
])  # fmt: skip
def test_mistakes_are_named(
    goclaw: Shell, service: FakeHeartbeats, arguments: list[str], code: int, words: str
) -> None:
    got = goclaw(*arguments)
    assert (got.code, got.out) == (code, "")
    assert words in got.err
    assert "\x1b" not in got.err
    assert service.told == {MAIN: [], HELPER: []}


def test_a_missing_database_is_exit_code_3(goclaw: Shell, service: FakeHeartbeats) -> None:
    service.failure = StoreUnavailable("the database does not answer")
    for command in (["heartbeat", "status"], ["heartbeat", "run"], ["event", "x"]):
        assert goclaw(*command).code == 3
    service.failure = HeartbeatError("no")
    assert goclaw("event", "x").code == 2


# ---------------------------------------------------------------------------- through a gateway


def test_it_is_the_same_through_a_gateway(goclaw: Shell, gateway: ThreadGateway) -> None:
    """What all commands print: see test_command_tree.py."""
    why_main = goclaw("heartbeat", "why", "main").out.splitlines()
    assert tuple(why_main) == why(gateway.control.hearts.views[MAIN], HERE)
    got = goclaw("heartbeat", "run", "--wait", "20")
    assert (got.code, got.err, got.out[:10]) == (0, "", "completed ")
    assert goclaw("event", "--now", "x").code == 0
    for arguments, code, words in (
        (["heartbeat", "status", "nobody"], 1, "there is no agent 'nobody'"),
        (["heartbeat", "status", ".."], 1, "there is no agent '..'"),
        (["heartbeat", "done", "7"], 1, "there is no item 7"),
        (["event", " "], 2, "an event needs a text"),
        (["event", "x" * 4001], 2, "at most 4000 characters"),
        (["event", "x" * 10_000_000], 2, "longer than"),
    ):
        got = goclaw(*arguments)
        assert (got.code, got.out, words in got.err) == (code, "", True), arguments
