"""The pages about heartbeats: cards, runs, the checklist, the dry run (OPS-3, HB-3, HB-9)."""

from __future__ import annotations

import html
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from goclaw_py.heartbeat.checklist.checklist import parse
from goclaw_py.heartbeat.models import (
    EVENT_CHARS,
    MAX_EVENTS,
    HeartbeatEvent,
    HeartbeatRunStatus,
    Skip,
)
from goclaw_py.heartbeat.views import DryRunReport
from goclaw_py.model.errors import BadChecklist
from goclaw_py.model.ids import AgentName, HeartbeatRunId
from goclaw_py.model.routes import Route
from goclaw_py.ports.heartbeat import NoHeartbeat
from goclaw_py.web.pages import heartbeats as page
from tests.unit.web.fake_heartbeats import AT, CHAT, HELPER, MAIN, OK, FakeHeartbeats
from tests.unit.web.fakes import FakeControl, unavailable
from tests.unit.web.pages.conftest import Browser
from tests.unit.web.pages.test_site import ATTACK, Reader


class Files(FakeHeartbeats):
    """Keeps the whole text of a checklist, as a file does."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    async def checklist(self, agent: AgentName) -> object:  # type: ignore[override]
        self._called("checklist", agent)
        return parse(self.text)

    async def write_checklist(  # type: ignore[override]
        self, agent: AgentName, text: str, *, expected: str | None = None
    ) -> object:
        self._called("write_checklist", agent, text, expected)
        await self._as_expected(agent, expected)
        self.text = text
        return parse(text)


@pytest.fixture
def hearts(control: FakeControl) -> FakeHeartbeats:
    return control.hearts


def text_of(answer: httpx.Response) -> str:
    """What a page says, on one line, as people read it."""
    return " ".join(html.unescape(answer.text).split())


def seen(text: str) -> str:
    """The version of a file that says this."""
    return parse(text).version


def file_of(control: FakeControl, text: str) -> Files:
    control.hearts = Files(text)
    return control.hearts


# ---------------------------------------------------------------------------- looking


async def test_each_agent_has_a_card_in_words(browser: Browser) -> None:
    """SPEC HB-9."""
    said = text_of(await browser.get("/heartbeats"))
    for part in (
        'href="/heartbeats/main"',
        'href="/heartbeats/helper"',
        ">on</span> every 30 minutes",
        "Tue 3 Mar 2026, 09:27 (Europe/Berlin)",
        "to telegram.work:-1005:7",
        "reachable",
        "$0.0123",
        "this month: $0.0246",
        "Nothing needed attention, so no message was sent.",
        "could not be delivered",
    ):
        assert part in said, part


async def test_without_agents_a_newcomer_is_told_what_to_do(
    browser: Browser, hearts: FakeHeartbeats
) -> None:
    hearts.views = {}
    said = text_of(await browser.get("/heartbeats"))
    assert "There are no agents." in said
    assert "[agents.main]" in said


async def test_a_heart_that_has_not_beaten_says_how_to_let_it(
    browser: Browser, hearts: FakeHeartbeats
) -> None:
    hearts.heartbeat_runs = []
    assert "There has been no heartbeat run yet." in text_of(await browser.get("/heartbeats"))
    hearts.texts[MAIN] = []
    said = text_of(await browser.get("/heartbeats/main"))
    assert "“Run now” starts one immediately." in said
    assert "Add what the agent should check." in said


async def test_a_chat_that_cannot_be_reached_is_said_so(
    browser: Browser, hearts: FakeHeartbeats
) -> None:
    route = Route(CHAT, problem="the bot was blocked")
    hearts.views = {MAIN: replace(hearts.views[MAIN], route=route)}
    said = text_of(await browser.get("/heartbeats"))
    assert "not reachable" in said
    assert "the bot was blocked" in said


async def test_the_strip_names_each_heartbeat_run_and_does_not_tell_by_colour_alone(
    browser: Browser,
) -> None:
    text = (await browser.get("/heartbeats")).text
    assert text.count('class="heartbeat-run ') == 3
    told = text.partition('href="/heartbeats/helper?heartbeat_run=019b-dead#chosen"')[2].partition(
        "</a>"
    )[0]
    assert 'title="Tue 3 Mar 2026, 08:30: delivery failed"' in told
    assert "✕" in told
    skipped = text.partition("heartbeat_run=019b-skipped#chosen")[0].rpartition("<a ")[2]
    assert 'class="heartbeat-run idle"' in skipped


async def test_no_more_heartbeats_are_shown_than_fit(
    browser: Browser, hearts: FakeHeartbeats
) -> None:
    hearts.heartbeat_runs = [
        replace(OK, id=HeartbeatRunId(f"b-{number}"), claimed_at=AT - timedelta(hours=number))
        for number in range(120)
    ]
    text = (await browser.get("/heartbeats")).text
    assert text.count('class="heartbeat-run ') == page.STRIP
    assert text.index("heartbeat_run=b-99#") < text.index("heartbeat_run=b-0#")


async def test_a_heartbeat_run_that_was_chosen_is_explained(
    browser: Browser, hearts: FakeHeartbeats
) -> None:
    said = text_of(await browser.get("/heartbeats/helper?heartbeat_run=019b-dead"))
    chosen = said.partition("The selected heartbeat run")[2].partition("</section>")[0]
    for part in (
        "delivery failed",
        "bot was blocked",
        "$0.0123",
        "1 min 00 s",
        'href="/runs/run-1',
    ):
        assert part in chosen, part
    assert "Write to the agent in that chat" in chosen
    alerted = replace(OK, status=HeartbeatRunStatus.ALERTED, reply="Mail!", target=CHAT)
    hearts.heartbeat_runs = [alerted]
    assert ">Mail!</pre>" in (await browser.get(f"/heartbeats/main?heartbeat_run={OK.id}")).text


@pytest.mark.parametrize("heartbeat_run", ["019b-dead", "none", "%00", "%3Cscript%3E"])
async def test_a_heartbeat_that_this_agent_has_not_is_not_known(
    heartbeat_run: str, browser: Browser
) -> None:
    answer = await browser.get(f"/heartbeats/main?heartbeat_run={heartbeat_run}")
    assert answer.status_code == 200
    assert "This heartbeat run is no longer stored." in answer.text


async def test_the_log_has_pages_and_a_filter(
    browser: Browser, hearts: FakeHeartbeats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "SHOWN", 2)
    hearts.heartbeat_runs = [
        replace(OK, id=HeartbeatRunId(f"b-{number}"), claimed_at=AT - timedelta(hours=number))
        for number in range(3)
    ]
    newest = html.unescape((await browser.get("/heartbeats/main?outcome=ok")).text)
    assert newest.count('<tr id="row-') == 2
    older = newest.partition(">Older")[0].rpartition('href="')[2].partition("#")[0]
    oldest = (await browser.get(older)).text
    assert oldest.count('<tr id="row-') == 1
    assert 'id="row-b-2"' in oldest
    assert "Newest" in oldest
    none = (await browser.get("/heartbeats/main?outcome=skipped:empty")).text
    assert "No heartbeat run has this outcome." in none
    assert (await browser.get("/heartbeats/main?outcome=bogus")).text.count('<tr id="row-') == 2
    assert (await browser.get("/heartbeats/main?before=x")).status_code == 422


async def test_nothing_that_agents_and_people_write_runs_in_the_browser(
    browser: Browser, control: FakeControl
) -> None:
    """SPEC SEC-1."""
    hearts = file_of(control, f"- [ ] {ATTACK}\n- [x] {ATTACK}\n")
    bad = replace(OK, status=HeartbeatRunStatus.ALERTED, reply=ATTACK, detail=ATTACK, target=CHAT)
    hearts.heartbeat_runs = [
        bad,
        replace(bad, id=HeartbeatRunId("b"), status=HeartbeatRunStatus.FAILED),
    ]
    hearts.views[MAIN] = replace(hearts.views[MAIN], last=bad, route=Route(CHAT, ATTACK, ATTACK))
    hearts.told[MAIN] = [HeartbeatEvent(1, MAIN, ATTACK, AT)]
    hearts.report = replace(hearts.report, prompt=ATTACK, detail=ATTACK)
    paths = ("", "/main", f"/main?heartbeat_run={OK.id}", "/main/dry-run")
    for path in paths:
        read = Reader((await browser.get(f"/heartbeats{path}")).text)
        assert len(read.scripts) == 1, path
        assert not read.handlers, path
        assert len(set(read.ids)) == len(read.ids), path
        assert not read.open, path


# ---------------------------------------------------------------------------- whose


@pytest.mark.parametrize("agent", ["nobody", "%00", "view", "-", "%3Cscript%3E", "x" * 600])
async def test_an_agent_that_there_is_not_is_404(agent: str, browser: Browser) -> None:
    for path in (f"/heartbeats/{agent}", f"/heartbeats/{agent}/dry-run"):
        answer = await browser.get(path)
        assert answer.status_code == 404
        assert "<script>" not in answer.text
    for action in ("run", "switch", "mute", "events", "checklist/add", "checklist/save"):
        assert (await browser.send_form(f"/heartbeats/{agent}/{action}")).status_code == 404


async def test_an_action_that_there_is_not_is_404(browser: Browser) -> None:
    assert (await browser.send_form("/heartbeats/main/explode")).status_code == 404
    assert (await browser.send_form("/heartbeats/main/checklist/burn")).status_code == 404


@pytest.mark.parametrize("action", ["run", "switch", "mute", "events", "checklist/save"])
async def test_what_is_no_form_is_415(
    action: str, browser: Browser, hearts: FakeHeartbeats
) -> None:
    headers = {"origin": "http://localhost:8420", "content-type": "text/plain"}
    answer = await browser.post(f"/heartbeats/main/{action}", content=b"on=no", headers=headers)
    assert answer.status_code == 415
    assert hearts.calls == []


# ---------------------------------------------------------------------------- doing


async def test_a_heartbeat_run_by_hand_is_shown_once_it_has_begun(
    browser: Browser, hearts: FakeHeartbeats
) -> None:
    """SPEC HB-11."""
    answer = await browser.send_form("/heartbeats/main/run")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/heartbeats/main?heartbeat_run=019b-now&notice=asked"
    assert ("run_now", MAIN) in hearts.calls
    assert "it is running" in text_of(await browser.get(answer.headers["location"]))


@pytest.mark.parametrize("refused", list(NoHeartbeat))
async def test_a_heartbeat_run_that_is_refused_is_explained(
    refused: NoHeartbeat, browser: Browser, hearts: FakeHeartbeats
) -> None:
    hearts.hand = refused
    answer = await browser.send_form("/heartbeats/main/run")
    assert answer.status_code == 409
    assert page._REFUSED[refused] in text_of(answer)


@pytest.mark.parametrize(("on", "switched"), [("yes", True), ("no", False), ("settings", None)])
async def test_a_heartbeat_is_switched(
    on: str, switched: bool | None, browser: Browser, hearts: FakeHeartbeats
) -> None:
    answer = await browser.send_form("/heartbeats/main/switch", on=on, back="all")
    assert answer.headers["location"] == "/heartbeats?notice=saved"
    assert hearts.views[MAIN].heartbeat.switched is switched


async def test_the_card_offers_only_what_makes_sense(
    browser: Browser, hearts: FakeHeartbeats
) -> None:
    assert "Turn off" in (await browser.get("/heartbeats/main")).text
    await hearts.switch(MAIN, on=False)
    text = (await browser.get("/heartbeats/main")).text
    assert "Turn on" in text
    assert "Use the settings" in text
    assert "Turn off" not in text
    bare = hearts.views[MAIN]
    hearts.views[MAIN] = replace(bare, heartbeat=replace(bare.heartbeat, interval=None))
    text = (await browser.get("/heartbeats/main")).text
    assert "Turn on" not in text
    assert "off in the settings" in text


async def test_to_switch_it_needs_a_word(browser: Browser, hearts: FakeHeartbeats) -> None:
    answer = await browser.send_form("/heartbeats/main/switch", on="maybe")
    assert answer.status_code == 422
    assert "On must be yes, no, or settings." in text_of(answer)
    assert hearts.views[MAIN].heartbeat.switched is None


async def test_a_heartbeat_is_muted_and_unmuted(browser: Browser, hearts: FakeHeartbeats) -> None:
    answer = await browser.send_form("/heartbeats/main/mute", **{"for": "until 18:00"})
    assert answer.headers["location"] == "/heartbeats/main?notice=muted"
    assert hearts.views[MAIN].heartbeat.muted_until == AT.replace(hour=17)
    said = text_of(await browser.get("/heartbeats/main"))
    assert "muted until today 18:00 (Europe/Berlin)" in said
    assert "Unmute" in said
    answer = await browser.send_form("/heartbeats/main/mute", **{"for": "off", "back": "all"})
    assert answer.headers["location"] == "/heartbeats?notice=unmuted"
    assert hearts.views[MAIN].heartbeat.muted_until is None


@pytest.mark.parametrize("how_long", ["", "soon", "500d", "<script>", "2h" * 500])
async def test_what_is_no_duration_is_said_and_shown_again(
    how_long: str, browser: Browser, hearts: FakeHeartbeats
) -> None:
    answer = await browser.send_form("/heartbeats/main/mute", **{"for": how_long})
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert hearts.views[MAIN].heartbeat.muted_until is None
    if how_long:
        field = answer.text.partition('name="for" value="')[2].partition('"')[0]
        assert html.unescape(field) == how_long


async def test_an_agent_is_told_something(browser: Browser, hearts: FakeHeartbeats) -> None:
    """SPEC HB-13."""
    answer = await browser.send_form("/heartbeats/main/events", text="The build is red.", now="yes")
    assert answer.headers["location"] == "/heartbeats/main?notice=told"
    assert ("add_event", MAIN, "The build is red.", True) in hearts.calls
    assert "The build is red." in (await browser.get("/heartbeats/main")).text


async def test_what_it_cannot_be_told_is_said(browser: Browser, hearts: FakeHeartbeats) -> None:
    answer = await browser.send_form("/heartbeats/main/events", text=" ")
    assert answer.status_code == 422
    assert "An event needs a text." in text_of(answer)
    long = "x" * (EVENT_CHARS + 1)
    answer = await browser.send_form("/heartbeats/main/events", text=long)
    assert answer.status_code == 422
    assert f'value="{long}"' in answer.text
    hearts.told[MAIN] = [HeartbeatEvent(number, MAIN, "x", AT) for number in range(MAX_EVENTS)]
    answer = await browser.send_form("/heartbeats/main/events", text="one more")
    assert answer.status_code == 409


# ---------------------------------------------------------------------------- the checklist

LIST = "# Mine\n\n- [ ] mail\n- [x] build\n- [ ] every 2h: post\n"


async def test_the_checklist_shows_what_is_done_too(browser: Browser, control: FakeControl) -> None:
    """SPEC HB-3."""
    file_of(control, LIST)
    text = (await browser.get("/heartbeats/main")).text
    items = text.partition('<ul class="marks">')[2].partition("</ul>")[0].split("<li ")[1:]
    assert ["done" in item.partition(">")[0] for item in items] == [False, True, False]
    assert [">Done</button>" in item for item in items] == [True, False, True]
    assert "every 2h: post" in items[2]
    assert f'<textarea id="text" name="text" rows="12" spellcheck="false">\n{LIST}<' in text


async def test_an_item_is_added(browser: Browser, hearts: FakeHeartbeats) -> None:
    answer = await browser.send_form("/heartbeats/main/checklist/add", item="look at the news")
    assert answer.headers["location"] == "/heartbeats/main?notice=saved"
    assert hearts.texts[MAIN][-1] == "look at the news"
    answer = await browser.send_form("/heartbeats/main/checklist/add", item=" ")
    assert answer.status_code == 422
    assert "An item needs a text." in text_of(answer)


async def test_an_item_is_ticked_off_by_its_number(
    browser: Browser, hearts: FakeHeartbeats
) -> None:
    state = seen((await hearts.checklist(MAIN)).text)
    answer = await browser.send_form("/heartbeats/main/checklist/done", number=1, seen=state)
    assert answer.status_code == 303
    assert ("complete_item", MAIN, 1, state) in hearts.calls


async def test_an_item_is_deleted_with_what_is_in_it(
    browser: Browser, control: FakeControl
) -> None:
    file = file_of(control, "- [ ] mail\n  - from Ann\n- [x] build\n")
    fields = {"number": 0, "seen": seen(file.text)}
    answer = await browser.send_form("/heartbeats/main/checklist/delete", **fields)
    assert answer.status_code == 303
    assert file.text == "- [x] build\n"


@pytest.mark.parametrize("number", ["", "9", "-1", "x", "9" * 5000])
@pytest.mark.parametrize("action", ["done", "delete"])
async def test_an_item_that_there_is_not_is_said(
    action: str, number: str, browser: Browser, control: FakeControl
) -> None:
    file = control.hearts
    state = seen((await file.checklist(MAIN)).text)
    path = f"/heartbeats/main/checklist/{action}"
    answer = await browser.send_form(path, number=number, seen=state)
    assert answer.status_code == 422
    assert len(file.texts[MAIN]) == 1


async def test_the_whole_file_is_saved_with_its_own_ends_of_lines(
    browser: Browser, control: FakeControl
) -> None:
    file = file_of(control, LIST)
    fields = {"text": "- [ ] a\r\n- [ ] b", "seen": seen(LIST)}
    assert (await browser.send_form("/heartbeats/main/checklist/save", **fields)).status_code == 303
    assert file.text == "- [ ] a\n- [ ] b"
    file.text = "- [ ] a\r\n"
    fields = {"text": "- [ ] c\r\n- [ ] d\r\n", "seen": seen(file.text)}
    await browser.send_form("/heartbeats/main/checklist/save", **fields)
    assert file.text == "- [ ] c\r\n- [ ] d\r\n"


async def test_a_file_that_has_changed_meanwhile_is_not_overwritten_unseen(
    browser: Browser, control: FakeControl
) -> None:
    file = file_of(control, LIST)
    before = seen(LIST)
    file.text = "- [ ] theirs </textarea><script>\n"
    mine = "- [ ] mine\n"
    path = "/heartbeats/main/checklist/save"
    answer = await browser.send_form(path, text=mine, seen=before)
    assert answer.status_code == 409
    assert "HEARTBEAT.md has changed meanwhile, so nothing was saved." in text_of(answer)
    assert "<script>" not in answer.text.replace("<script src", "")
    assert file.text.startswith("- [ ] theirs")
    field = answer.text.partition('<textarea id="text"')[2].partition("</textarea>")[0]
    attributes, _, shown = field.partition(">\n")
    assert "autofocus" in attributes
    assert shown == mine
    assert "- [ ] theirs" in html.unescape(answer.text).partition('id="now"')[2]
    again = answer.text.partition(f'action="{path}"')[2].partition('name="seen" value="')[2]
    answer = await browser.send_form(path, text=mine, seen=again.partition('"')[0])
    assert answer.status_code == 303
    assert file.text == mine


@pytest.mark.parametrize(("action", "fields"), [("save", {"text": "- [ ] mine"}), ("delete", {})])
async def test_what_changes_between_look_and_write_is_not_overwritten_either(
    action: str, fields: dict[str, str], browser: Browser, control: FakeControl
) -> None:
    """Somebody else may save in between; only the write itself can tell."""
    file = file_of(control, LIST)
    write = file.write_checklist

    async def overtaken(agent: AgentName, text: str, *, expected: str | None = None) -> object:
        file.text = "- [ ] theirs\n"
        return await write(agent, text, expected=expected)

    file.write_checklist = overtaken  # type: ignore[method-assign]
    path = f"/heartbeats/main/checklist/{action}"
    answer = await browser.send_form(path, number=0, seen=seen(LIST), **fields)
    assert answer.status_code == 409
    assert file.text == "- [ ] theirs\n"


@pytest.mark.parametrize("action", ["done", "delete"])
async def test_a_number_of_another_list_touches_nothing(
    action: str, browser: Browser, hearts: FakeHeartbeats
) -> None:
    for state in ("", "ü", seen("another")):
        path = f"/heartbeats/main/checklist/{action}"
        answer = await browser.send_form(path, number=1, seen=state)
        assert answer.status_code == 409
    assert hearts.texts[MAIN] == ["look at the mail\x1b[2J"]


async def test_a_file_that_cannot_be_read_is_said_and_the_rest_is_shown(
    browser: Browser, hearts: FakeHeartbeats, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(_agent: AgentName) -> None:
        raise BadChecklist("HEARTBEAT.md is a folder")

    monkeypatch.setattr(hearts, "checklist", unreadable)
    answer = await browser.get("/heartbeats/main")
    assert answer.status_code == 200
    assert "HEARTBEAT.md is a folder" in answer.text
    assert "every 30 minutes" in answer.text
    assert "<textarea" not in answer.text
    fields = {"text": "what I typed", "seen": seen("")}
    answer = await browser.send_form("/heartbeats/main/checklist/save", **fields)
    assert answer.status_code == 422
    assert "\nwhat I typed</textarea>" in answer.text


# ---------------------------------------------------------------------------- the dry run


async def test_the_dry_run_shows_each_check_and_asks_no_model(
    browser: Browser, hearts: FakeHeartbeats
) -> None:
    """SPEC HB-11."""
    said = text_of(await browser.get("/heartbeats/main/dry-run"))
    assert said.count('class="badge good">passed') == 4
    assert 'Would it ask the agent? <span class="badge good">yes' in said
    assert "look at the mail" in said.partition("Prompt for the agent")[2]
    assert {call[0] for call in hearts.calls} == {"view", "dry_run"}


@pytest.mark.parametrize(
    ("skip", "passed", "words"),
    [
        (Skip.DISABLED, 0, "the heartbeat is off"),
        (Skip.NO_FILE, 1, "there is no HEARTBEAT.md"),
        (Skip.UNREADABLE, 1, "cannot be read"),
        (Skip.EMPTY, 1, "has nothing to check"),
        (Skip.NOTHING_DUE, 1, "no item of HEARTBEAT.md is due"),
        (None, 2, "someone is talking to the agent"),
        (Skip.BUDGET, 3, "the daily budget of the heartbeat is used up"),
    ],
)
async def test_the_dry_run_says_which_check_it_ends_at(
    skip: Skip | None, passed: int, words: str, browser: Browser, hearts: FakeHeartbeats
) -> None:
    status = HeartbeatRunStatus.DEFERRED if skip is None else HeartbeatRunStatus.SKIPPED
    hearts.report = DryRunReport(status, skip, "", "", Route(None, problem="no chat is known"))
    said = text_of(await browser.get("/heartbeats/main/dry-run"))
    assert said.count('class="badge good">passed') == passed
    assert said.count("skipped here") + said.count("waits here") == 1
    assert said.count("not reached") == 4 - passed
    assert words in said
    assert "An alert goes nowhere: no chat is known." in said
    assert "Prompt for the agent" not in said


async def test_the_dry_run_says_what_skips_regular_heartbeat_runs(
    browser: Browser, hearts: FakeHeartbeats
) -> None:
    night = replace(hearts.views[HELPER], now=AT.replace(hour=23))
    muted = replace(night.heartbeat, muted_until=night.now + timedelta(hours=1))
    hearts.views[HELPER] = replace(night, heartbeat=muted)
    said = text_of(await browser.get("/heartbeats/helper/dry-run"))
    assert said.count("a scheduled run would be skipped now") == 2
    assert "ignored for manual runs" in said


# ---------------------------------------------------------------------------- without a database


class FilesOnly(Files):
    """The database is away; a checklist is a file."""

    def _called(self, *call: object, known: object = MAIN) -> None:
        super()._called(*call, known=known)
        if "checklist" not in str(call[0]):
            raise unavailable()


@pytest.mark.parametrize("path", ["/heartbeats", "/heartbeats/main", "/heartbeats/main/dry-run"])
async def test_a_page_without_its_database_says_so(
    path: str, browser: Browser, control: FakeControl
) -> None:
    control.hearts = FilesOnly(LIST)
    answer = await browser.get(path)
    assert answer.status_code == 503
    assert "database does not answer" in text_of(answer)


async def test_the_checklist_is_edited_without_a_database_too(
    browser: Browser, control: FakeControl
) -> None:
    control.hearts = file = FilesOnly(LIST)
    answer = await browser.get("/heartbeats/main")
    assert f'spellcheck="false">\n{LIST}<' in answer.text
    fields = {"text": "- [ ] mine", "seen": seen(LIST)}
    answer = await browser.send_form("/heartbeats/main/checklist/save", **fields)
    assert (answer.status_code, file.text) == (303, "- [ ] mine")
    answer = await browser.send_form("/heartbeats/main/checklist/save", **fields)
    assert answer.status_code == 503
    assert "HEARTBEAT.md has changed meanwhile, so nothing was saved." in text_of(answer)


@pytest.mark.parametrize(
    ("action", "field", "typed"), [("events", "text", "The build is red."), ("mute", "for", "3h")]
)
async def test_what_could_not_be_stored_is_still_in_its_form(
    action: str, field: str, typed: str, browser: Browser, control: FakeControl
) -> None:
    control.hearts = FilesOnly(LIST)
    answer = await browser.send_form(f"/heartbeats/main/{action}", **{field: typed})
    assert answer.status_code == 503
    assert text_of(answer).count("The database does not answer.") == 1
    if action == "events":
        assert f'value="{typed}"' in answer.text


async def test_the_chosen_heartbeat_run_is_marked_in_the_strip(browser: Browser) -> None:
    text = (await browser.get(f"/heartbeats/main?heartbeat_run={OK.id}")).text
    assert text.count('aria-current="true"') == 1
    assert (
        'aria-current="true"'
        in text.partition(f'id="heartbeat-run-{OK.id}"')[2].partition("</li>")[0]
    )
