"""The pages about heartbeats: cards, runs, the checklist, the dry run (OPS-3, HB-3, HB-9)."""

from __future__ import annotations

import html
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.errors import BadChecklist
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.targets import Route
from goclaw_py.operations.heartbeats import page
from goclaw_py.schedule.heartbeat.checklist.checklist import parse
from goclaw_py.schedule.heartbeat.models import (
    EVENT_CHARS,
    MAX_EVENTS,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunStatus,
    NoHeartbeat,
    Skip,
)
from goclaw_py.schedule.heartbeat.views import DryRunReport
from tests.unit.web.fake_heartbeats import AT, CHAT, HELPER, MAIN, OK
from tests.unit.web.fake_heartbeats import FakeHeartbeats as Hearts
from tests.unit.web.fakes import NOW, FakeControl, unavailable
from tests.unit.web.pages.conftest import ORIGIN, Browser
from tests.unit.web.pages.test_site import ATTACK, check_that_nothing_runs

ALERT = replace(OK, status=HeartbeatRunStatus.ALERTED, reply="Mail!", target=CHAT)
SAVE = "/heartbeats/main/checklist/save"
SAVED = "/heartbeats/main?notice=saved"
CHANGED = "HEARTBEAT.md has changed meanwhile, so nothing was saved."


class Files(Hearts):
    """Keeps the whole text of a checklist, as a file does."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    async def checklist(self, agent: AgentName) -> object:  # type: ignore[override]
        self._called("checklist", agent)
        return parse(self.text)

    async def write_checklist(  # type: ignore[override]
        self, agent: AgentName, text: str, *, version: str | None = None
    ) -> object:
        self._called("write_checklist", agent, text, version)
        await self._as_expected(agent, version)
        self.text = text
        return parse(text)


@pytest.fixture
def hearts(control: FakeControl) -> Hearts:
    return control.hearts


LIST = "# Mine\n\n- [ ] mail\n- [x] build\n- [ ] every 2h: post\n"


@pytest.fixture
def file(control: FakeControl) -> Files:
    """The checklist is a file that says ``LIST``."""
    control.hearts = Files(LIST)
    return control.hearts


def seen(text: str) -> str:
    """The version of a file that says this."""
    return parse(text).version


def beats(count: int) -> list[HeartbeatRun]:
    """One an hour, the newest first."""
    return [
        replace(OK, id=HeartbeatRunId(f"b-{number}"), claimed_at=AT - timedelta(hours=number))
        for number in range(count)
    ]


# ---------------------------------------------------------------------------- looking


async def test_each_agent_has_a_row_in_words(browser: Browser, control: FakeControl) -> None:
    """SPEC HB-9."""
    control.named = KnownNames({replace(CHAT, thread=None): "Family"})
    await browser.says(
        "/heartbeats",
        *('href="/heartbeats/main"', 'href="/heartbeats/helper"', "every 30 minutes"),
        *("Tue 3 Mar 2026, 09:27 (Europe/Berlin)", ">Family</bdi>", "telegram.work:-1005:7"),
        *("$0.0123", "this month: $0.0246", "could not be delivered"),
        "Nothing needed attention, so no message was sent.",
    )


async def test_what_is_missing_has_its_advice(browser: Browser, hearts: Hearts) -> None:
    hearts.heartbeat_runs = []
    await browser.says("/heartbeats", "none yet")
    hearts.texts[MAIN] = []
    told = ("There has been no heartbeat run yet.", "“Run now” starts one immediately")
    await browser.says("/heartbeats/main", *told, "Add what the agent should check.")
    route = Route(CHAT, problem="the bot was blocked")
    hearts.views = {MAIN: replace(hearts.views[MAIN], route=route)}
    await browser.says("/heartbeats", "but cannot be delivered", "the bot was blocked")
    hearts.views = {}
    await browser.says("/heartbeats", "There are no agents.", "[agents.main]")


async def test_an_alert_without_a_chat_is_no_success(browser: Browser, hearts: Hearts) -> None:
    nobody = "nobody has spoken to this agent where it could answer"
    hearts.views = {MAIN: replace(hearts.views[MAIN], route=Route(None, nobody, nobody))}
    said = await browser.says("/heartbeats", "no chat yet", "An alert then only stands on its page")
    assert "problem" not in said.partition('id="heart-main"')[2].partition("</tr>")[0]
    for status, meaning, words in (
        (HeartbeatRunStatus.NO_ROUTE, "bad", "alert: no chat yet"),
        (HeartbeatRunStatus.LOGGED, "idle", "alert: only logged"),
    ):
        hearts.heartbeat_runs = [replace(ALERT, status=status, target=None)]
        await browser.says("/heartbeats/main", f'<span class="badge {meaning}">{words}</span>')


async def test_an_empty_checklist_says_where_to_add_items(browser: Browser, hearts: Hearts) -> None:
    skipped = replace(OK, status=HeartbeatRunStatus.SKIPPED, skip=Skip.EMPTY)
    hearts.views = {MAIN: replace(hearts.views[MAIN], last=skipped)}
    advice = "If it is still so, items can be added below."
    said = await browser.says("/heartbeats/main", advice, 'id="checklist"')
    assert "on its page" not in said
    hearts.views = {MAIN: replace(hearts.views[MAIN], last=OK)}
    assert advice not in await browser.says("/heartbeats/main")


async def test_the_strip_tells_more_than_colours(browser: Browser, hearts: Hearts) -> None:
    text = (await browser.get("/heartbeats")).text
    assert text.count("<title>") == 1 + 3  # of the page, and one for each run
    assert 'aria-label="delivery failed"' in text
    text = (await browser.get("/heartbeats/helper")).text
    dead = text.partition('href="/heartbeats/helper?heartbeat_run=019b-dead#chosen"')[2]
    told = dead.partition("</a>")[0]
    assert "<title>Tue 3 Mar 2026, 08:30 (Europe/Berlin): delivery failed</title>" in told
    # An exclamation mark.
    assert told.partition('<g class="bad">')[2].count("<rect") == 2
    chosen = (await browser.get(f"/heartbeats/main?heartbeat_run={OK.id}")).text
    assert chosen.partition("<main")[2].count('aria-current="true"') == 1
    one = chosen.partition(f'id="heartbeat-run-{OK.id}"')[2].partition("</a>")[0]
    assert 'aria-current="true"' in one
    hearts.heartbeat_runs = beats(120)
    text = (await browser.get("/heartbeats/main")).text
    assert text.count('id="heartbeat-run-') == page.STRIP
    assert text.index("heartbeat_run=b-0#") < text.index("heartbeat_run=b-39#")
    text = (await browser.get("/heartbeats?agent=main")).text
    assert text.count("<title>") == 1 + page.SHORT_STRIP


async def test_a_chosen_heartbeat_run_is_told(browser: Browser, hearts: Hearts) -> None:
    said = await browser.says("/heartbeats/helper?heartbeat_run=019b-dead")
    chosen = said.partition("The selected heartbeat run")[2].partition("</section>")[0]
    told = ("delivery failed", "bot was blocked", "$0.0123", "1 min", 'href="/runs/run-1')
    for part in (*told, "Write to the agent in the chat"):
        assert part in chosen, part
    hearts.heartbeat_runs = [ALERT]
    await browser.says(f"/heartbeats/main?heartbeat_run={OK.id}", ">Mail!</pre>")


async def test_a_heartbeat_that_this_agent_has_not_is_not_known(browser: Browser) -> None:
    for one in ("019b-dead", "none", "%00", "%3Cscript%3E"):
        gone = "This heartbeat run is no longer stored."
        await browser.says(f"/heartbeats/main?heartbeat_run={one}", gone)


async def test_the_log_has_pages_and_a_filter(
    browser: Browser, hearts: Hearts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "SHOWN", 2)
    hearts.heartbeat_runs = beats(3)
    newest = await browser.says("/heartbeats/main?outcome=ok")
    assert newest.count('<tr id="row-') == 2
    older = newest.partition(">Older")[0].rpartition('href="')[2].partition("#")[0]
    assert (await browser.says(older, 'id="row-b-2"', "Newest")).count('<tr id="row-') == 1
    none = "No heartbeat run matches."
    await browser.says("/heartbeats/main?outcome=skipped:empty", none)
    assert (await browser.get("/heartbeats/main?before=x")).status_code == 422


async def test_nothing_that_anybody_writes_runs_in_browsers(browser: Browser, file: Files) -> None:
    """SPEC SEC-1."""
    file.text = f"- [ ] {ATTACK}\n- [x] {ATTACK}\n"
    bad = replace(ALERT, reply=ATTACK, detail=ATTACK)
    failed = replace(bad, id=HeartbeatRunId("b"), status=HeartbeatRunStatus.FAILED)
    file.heartbeat_runs = [bad, failed]
    file.views[MAIN] = replace(file.views[MAIN], last=bad, route=Route(CHAT, ATTACK, ATTACK))
    file.told[MAIN] = [HeartbeatEvent(1, MAIN, ATTACK, AT)]
    file.report = replace(file.report, prompt=ATTACK, detail=ATTACK)
    for path in ("", "/main", f"/main?heartbeat_run={OK.id}", "/main/dry-run"):
        check_that_nothing_runs((await browser.get(f"/heartbeats{path}")).text)


# ---------------------------------------------------------------------------- whose


@pytest.mark.parametrize("agent", ["nobody", "%00", "view", "-", "%3Cscript%3E", "x" * 600])
async def test_an_agent_that_there_is_not_is_404(agent: str, browser: Browser) -> None:
    for path in (f"/heartbeats/{agent}", f"/heartbeats/{agent}/dry-run"):
        answer = await browser.get(path)
        assert (answer.status_code, "<script>" in answer.text) == (404, False)
    for action in ("run", "switch", "mute", "events", "checklist/add", "checklist/save"):
        await browser.refuses(f"/heartbeats/{agent}/{action}", 404)


async def test_what_is_no_form_is_refused(browser: Browser, hearts: Hearts) -> None:
    await browser.refuses("/heartbeats/main/explode", 404)
    await browser.refuses("/heartbeats/main/checklist/burn", 404)
    headers = {**ORIGIN, "content-type": "text/plain"}
    for action in ("run", "switch", "mute", "events", "checklist/save"):
        answer = await browser.post(f"/heartbeats/main/{action}", content=b"on=no", headers=headers)
        assert answer.status_code == 415
    assert hearts.calls == []


# ---------------------------------------------------------------------------- doing


async def test_a_heartbeat_run_by_hand_is_shown(browser: Browser, hearts: Hearts) -> None:
    """SPEC HB-11."""
    place = "/heartbeats/main?heartbeat_run=019b-now&notice=asked+heartbeat+main"
    await browser.leads("/heartbeats/main/run", place)
    assert ("run_now", MAIN) in hearts.calls
    await browser.says(place, "It is running.")
    for refused in NoHeartbeat:
        hearts.hand = refused
        await browser.refuses("/heartbeats/main/run", 409, page._REFUSED[refused])


async def test_a_heartbeat_is_switched(browser: Browser, hearts: Hearts) -> None:
    path = "/heartbeats/main/switch"
    await browser.refuses(path, 422, "On must be yes, no, or settings.", on="maybe")
    assert hearts.views[MAIN].heartbeat.switched is None
    for on, switched, word in (
        ("yes", True, "turned-on"),
        ("no", False, "turned-off"),
        ("settings", None, "as-set"),
    ):
        await browser.leads(path, f"/heartbeats?notice={word}+main", on=on, back="all")
        assert hearts.views[MAIN].heartbeat.switched is switched


async def test_the_card_offers_what_makes_sense(browser: Browser, hearts: Hearts) -> None:
    await browser.says("/heartbeats/main", "Turn off", 'href="/heartbeats/main/dry-run"')
    await hearts.switch(MAIN, on=False)
    said = await browser.says("/heartbeats/main", "Turn on", "Use the settings")
    assert "Turn off" not in said
    bare = hearts.views[MAIN]
    hearts.views[MAIN] = replace(bare, heartbeat=replace(bare.heartbeat, interval=None))
    assert "Turn on" not in await browser.says("/heartbeats/main", "off in the settings")


async def test_a_heartbeat_is_muted_and_unmuted(browser: Browser, hearts: Hearts) -> None:
    path = "/heartbeats/main/mute"
    await browser.leads(path, "/heartbeats/main?notice=muted+main", **{"for": "until 18:00"})
    assert hearts.views[MAIN].heartbeat.muted_until == AT.replace(hour=17)
    await browser.says("/heartbeats/main", "muted until today 18:00 (Europe/Berlin)", "Unmute")
    # The list names the same next run as the sentence on the page: one that is not skipped.
    for shown_at in ("/heartbeats", "/heartbeats/main"):
        await browser.says(shown_at, "Tue 3 Mar 2026, 18:27 (Europe/Berlin)")
    await browser.leads(path, "/heartbeats?notice=unmuted+main", **{"for": "off", "back": "all"})
    assert hearts.views[MAIN].heartbeat.muted_until is None
    for how_long in ("", "soon", "500d", "<script>", "2h" * 500):
        text = await browser.refuses(path, 422, 'role="alert"', **{"for": how_long})
        assert hearts.views[MAIN].heartbeat.muted_until is None
        field = text.partition('name="for" value="')[2].partition('"')[0]
        assert html.unescape(field) == how_long or not how_long


async def test_an_agent_is_told_something(browser: Browser, hearts: Hearts) -> None:
    """SPEC HB-13."""
    path, text = "/heartbeats/main/events", "The build is red."
    await browser.leads(path, "/heartbeats/main?notice=told", text=text, now="yes")
    assert ("add_event", MAIN, text, True) in hearts.calls
    await browser.says("/heartbeats/main", text)
    await browser.refuses(path, 422, "An event needs a text.", text=" ")
    long = "x" * (EVENT_CHARS + 1)
    await browser.refuses(path, 422, f'value="{long}"', text=long)
    hearts.told[MAIN] = [HeartbeatEvent(number, MAIN, "x", AT) for number in range(MAX_EVENTS)]
    await browser.refuses(path, 409, text="one more")


# ---------------------------------------------------------------------------- the checklist


async def test_the_checklist_shows_what_is_done_too(browser: Browser, file: Files) -> None:
    """SPEC HB-3."""
    text = (await browser.get("/heartbeats/main")).text
    items = text.partition('aria-label="Items"')[2].partition("</table>")[0].split("<tr>")[1:]
    assert ["(done)" in item for item in items] == [False, True, False]
    assert [">Done</button>" in item for item in items] == [True, False, True]
    assert "every 2h: post" in items[2]
    assert f'<textarea id="text" name="text" rows="12" spellcheck="false">\n{LIST}<' in text


async def test_items_are_added_and_ticked_off(browser: Browser, hearts: Hearts) -> None:
    path = "/heartbeats/main/checklist"
    state = seen((await hearts.checklist(MAIN)).text)
    await browser.leads(f"{path}/done", SAVED, number=1, seen=state)
    assert ("complete_item", MAIN, 1, state) in hearts.calls
    await browser.leads(f"{path}/add", SAVED, item="look at the news")
    assert hearts.texts[MAIN][-1] == "look at the news"
    await browser.refuses(f"{path}/add", 422, "An item needs a text.", item=" ")


async def test_an_item_is_deleted_with_what_is_in_it(browser: Browser, file: Files) -> None:
    file.text = "- [ ] mail\n  - from Ann\n- [x] build\n"
    fields = {"number": 0, "seen": seen(file.text)}
    await browser.leads("/heartbeats/main/checklist/delete", SAVED, **fields)
    assert file.text == "- [x] build\n"


@pytest.mark.parametrize("action", ["done", "delete"])
async def test_an_item_that_there_is_not_is_said_and_nothing_is_touched(
    action: str, browser: Browser, hearts: Hearts
) -> None:
    path = f"/heartbeats/main/checklist/{action}"
    state = seen((await hearts.checklist(MAIN)).text)
    for number in ("", "9", "-1", "x", "9" * 5000):
        await browser.refuses(path, 422, number=number, seen=state)
    for other in ("", "ü", seen("another")):
        await browser.refuses(path, 409, number=1, seen=other)
    assert hearts.texts[MAIN] == ["look at the mail\x1b[2J"]


async def test_a_whole_file_is_saved_with_its_ends_of_lines(browser: Browser, file: Files) -> None:
    await browser.leads(SAVE, SAVED, text="- [ ] a\r\n- [ ] b", seen=seen(LIST))
    assert file.text == "- [ ] a\n- [ ] b"
    file.text = "- [ ] a\r\n"
    await browser.leads(SAVE, SAVED, text="- [ ] c\r\n- [ ] d\r\n", seen=seen(file.text))
    assert file.text == "- [ ] c\r\n- [ ] d\r\n"


async def test_a_changed_file_is_not_overwritten_unseen(browser: Browser, file: Files) -> None:
    file.text = "- [ ] theirs </textarea><script>\n"
    mine = "- [ ] mine\n"
    text = await browser.refuses(SAVE, 409, CHANGED, text=mine, seen=seen(LIST))
    assert "<script>" not in text.replace("<script src", "")
    assert file.text.startswith("- [ ] theirs")
    field = text.partition('<textarea id="text"')[2].partition("</textarea>")[0]
    attributes, _, shown = field.partition(">\n")
    assert ("autofocus" in attributes, shown) == (True, mine)
    assert "- [ ] theirs" in html.unescape(text).partition('id="now"')[2]
    again = text.partition(f'action="{SAVE}"')[2].partition('name="seen" value="')[2]
    await browser.leads(SAVE, SAVED, text=mine, seen=again.partition('"')[0])
    assert file.text == mine


@pytest.mark.parametrize(("action", "fields"), [("save", {"text": "- [ ] mine"}), ("delete", {})])
async def test_what_changes_between_look_and_write_is_not_overwritten_either(
    action: str, fields: dict[str, str], browser: Browser, file: Files
) -> None:
    """Somebody else may save in between; only the write itself can tell."""
    write = file.write_checklist

    async def overtaken(agent: AgentName, text: str, *, version: str | None = None) -> object:
        file.text = "- [ ] theirs\n"
        return await write(agent, text, version=version)

    file.write_checklist = overtaken  # type: ignore[method-assign]
    path = f"/heartbeats/main/checklist/{action}"
    await browser.refuses(path, 409, number=0, seen=seen(LIST), **fields)
    assert file.text == "- [ ] theirs\n"


async def test_a_file_that_cannot_be_read_is_said_and_the_rest_is_shown(
    browser: Browser, hearts: Hearts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(_agent: AgentName) -> None:
        raise BadChecklist("HEARTBEAT.md is a folder")

    monkeypatch.setattr(hearts, "checklist", unreadable)
    told = ("HEARTBEAT.md is a folder", "every 30 minutes")
    assert "<textarea" not in await browser.says("/heartbeats/main", *told)
    text = await browser.refuses(SAVE, 422, text="what I typed", seen=seen(""))
    assert "\nwhat I typed</textarea>" in text


# ---------------------------------------------------------------------------- the dry run


async def test_the_dry_run_shows_checks_only(browser: Browser, hearts: Hearts) -> None:
    """SPEC HB-11."""
    asked = 'Would it ask the agent? <span class="badge good">yes'
    said = await browser.says("/heartbeats/main/dry-run", asked)
    assert said.count('class="badge good">passed') == 4
    assert "look at the mail" in said.partition("Prompt for the agent")[2]
    assert {call[0] for call in hearts.calls} == {"view", "dry_run"}


@pytest.mark.parametrize(("skip", "passed", "words"), [
    (Skip.DISABLED, 0, "the heartbeat is off"), (Skip.NO_FILE, 1, "there is no HEARTBEAT.md"),
    (Skip.UNREADABLE, 1, "cannot be read"), (Skip.EMPTY, 1, "has nothing to check"),
    (Skip.NOTHING_DUE, 1, "no item of HEARTBEAT.md is due"),
    (None, 2, "someone is talking to the agent"),
    (Skip.BUDGET, 3, "the daily budget of the heartbeat is used up"),
])  # fmt: skip
async def test_the_dry_run_says_which_check_it_ends_at(
    skip: Skip | None, passed: int, words: str, browser: Browser, hearts: Hearts
) -> None:
    status = HeartbeatRunStatus.DEFERRED if skip is None else HeartbeatRunStatus.SKIPPED
    hearts.report = DryRunReport(status, skip, "", "", Route(None, problem="no chat is known"))
    told = (words, "An alert goes nowhere: no chat is known.")
    said = await browser.says("/heartbeats/main/dry-run", *told)
    assert said.count('class="badge good">passed') == passed
    assert said.count("skipped here") + said.count("waits here") == 1
    assert said.count("not reached") == 4 - passed
    assert "Prompt for the agent" not in said


async def test_the_dry_run_says_what_skips_others(browser: Browser, hearts: Hearts) -> None:
    night = replace(hearts.views[HELPER], now=AT.replace(hour=23))
    muted = replace(night.heartbeat, muted_until=night.now + timedelta(hours=1))
    hearts.views[HELPER] = replace(night, heartbeat=muted)
    said = await browser.says("/heartbeats/helper/dry-run", "ignored for manual runs")
    assert said.count("a scheduled run would be skipped now") == 2


# ---------------------------------------------------------------------------- without a database


class FilesOnly(Files):
    """The database is away; a checklist is a file."""

    def _called(self, *call: object, known: object = MAIN) -> None:
        super()._called(*call, known=known)
        if "checklist" not in str(call[0]):
            raise unavailable()


async def test_without_a_database_files_are_edited(browser: Browser, control: FakeControl) -> None:
    control.hearts = file = FilesOnly(LIST)
    for path in ("/heartbeats", "/heartbeats/main", "/heartbeats/main/dry-run"):
        await browser.says(path, "database does not answer", status=503)
    shown = (await browser.get("/heartbeats/main")).text
    assert f'spellcheck="false">\n{LIST}<' in shown
    fields = {"text": "- [ ] mine", "seen": seen(LIST)}
    await browser.leads(SAVE, SAVED, **fields)
    assert file.text == "- [ ] mine"
    await browser.refuses(SAVE, 503, CHANGED, **fields)


async def test_what_could_not_be_stored_is_still_in_its_form(
    browser: Browser, control: FakeControl
) -> None:
    control.hearts = FilesOnly(LIST)
    away, typed = "The database does not answer.", {"text": "The build is red."}
    text = await browser.refuses("/heartbeats/main/events", 503, **typed)
    assert (text.count(away), 'value="The build is red."' in text) == (1, True)
    text = await browser.refuses("/heartbeats/main/mute", 503, **{"for": "3h"})
    assert text.count(away) == 1


# ---------------------------------------------------------------------------- filters


@pytest.mark.parametrize(
    ("query", "agents"),
    [
        ("", ["main", "helper"]),
        ("agent=helper", ["helper"]),
        ("show=failing", []),
        ("show=muted", ["helper"]),
        ("show=off&agent=main", []),
    ],
)
async def test_heartbeats_are_found_by_state_and_agent(
    browser: Browser, hearts: Hearts, query: str, agents: list[str]
) -> None:
    view = hearts.views[HELPER]
    muted = replace(view.heartbeat, muted_until=view.now + timedelta(hours=1))
    hearts.views[HELPER] = replace(view, heartbeat=muted)
    said = await browser.says(f"/heartbeats?{query}")
    assert [one for one in ("main", "helper") if f'id="heart-{one}"' in said] == agents
    assert ("No heartbeat matches." in said) is (not agents)


async def test_the_log_is_listed_by_outcome_and_time(browser: Browser, hearts: Hearts) -> None:
    said = await browser.says("/heartbeats/main?outcome=failed&range=7d", "No heartbeat run match")
    assert 'action="/heartbeats/main#log"' in said
    since = [call[-1] for call in hearts.calls if call[0] == "log" and call[-1]][-1]
    assert since == NOW.replace(microsecond=0) - timedelta(days=7)


async def test_the_filters_stay_after_an_action(browser: Browser) -> None:
    place = "/heartbeats?agent=main&show=on&notice=turned-off+main"
    fields = {"on": "no", "back": "all", "rows": "agent=main&show=on&path=//x"}
    await browser.leads("/heartbeats/main/switch", place, **fields)
