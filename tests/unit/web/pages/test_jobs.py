"""The pages about jobs: what they show, what their forms and buttons do (OPS-3, CRON-11)."""

from __future__ import annotations

import html
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from goclaw_py.jobs.execution_models import OccurrenceStatus, Why
from goclaw_py.jobs.models import FixedMessage, Job, JobState, Notify, Program, Prompt, TargetKind
from goclaw_py.jobs.schedule import At, Cron, Every
from goclaw_py.model.errors import UnknownJob
from goclaw_py.model.ids import AgentName
from goclaw_py.model.messages import PeerKind, Target
from goclaw_py.ports.jobs import JobChange, JobDraft, Requester, RunNow, StartedNow
from goclaw_py.ports.store import JobQuery
from goclaw_py.web.pages import jobs as page
from goclaw_py.web.pages.jobs import SHOWN
from tests.unit.web.fake_jobs import FRIDAY, STARTED, Jobs
from tests.unit.web.fakes import FakeControl, unavailable
from tests.unit.web.pages.conftest import Browser
from tests.unit.web.pages.past import began, ran
from tests.unit.web.pages.test_site import ATTACK, Reader

BY = Requester(None)
DAILY = Cron("0 9 * * 1-5")
NEW = {"name": "Standup", "does": "prompt", "text": "What is new?", "kind": "cron"}
NEW |= {"expression": "0 9 * * 1-5", "zone": "Europe/Berlin", "target": "last", "notify": "always"}


async def made(control: FakeControl, slug: str = "standup", **draft: object) -> Job:
    whole = {"schedule": DAILY, "payload": Prompt("What is new?"), "zone": "Europe/Berlin", **draft}
    return await control.made.service.create(JobDraft(slug=slug, **whole), BY)  # type: ignore[arg-type]


async def now_of(control: FakeControl, job: Job) -> Job:
    return await control.made.service.get(job.id, BY)


def text_of(answer: httpx.Response) -> str:
    """What a page says, on one line, as people read it."""
    return " ".join(html.unescape(answer.text).split())


# ---------------------------------------------------------------------------- the list


async def test_without_jobs_a_newcomer_is_told_how_to_make_one(browser: Browser) -> None:
    said = text_of(await browser.get("/jobs"))
    assert "There are no jobs yet." in said
    assert "goclaw cron add standup" in said
    assert 'href="/jobs/new"' in said


async def test_a_job_is_listed_in_words_and_in_its_own_zone(
    browser: Browser, control: FakeControl
) -> None:
    job = await made(control, name="Daily standup")
    await ran(control.made, job, OccurrenceStatus.OK)
    said = text_of(await browser.get("/jobs"))
    assert "Daily standup" in said
    assert "at 09:00 on Monday to Friday (Europe/Berlin)" in said
    assert "Mon 5 Jan 2026, 09:00 (Europe/Berlin)" in said
    assert "Fri 2 Jan 2026, 13:01 (Europe/Berlin)" in said
    assert "prompt: What is new?" in said


async def test_the_list_says_why_a_job_does_not_run(browser: Browser, control: FakeControl) -> None:
    job = await made(control)
    await control.made.service.edit(job.id, JobChange(state=JobState.PAUSED), BY)
    assert "It will not run: paused." in text_of(await browser.get("/jobs"))
    failing = await made(control, "failing")
    await ran(control.made, failing, OccurrenceStatus.FAILED, error="the provider said no")
    said = text_of(await browser.get("/jobs?name=failing"))
    assert "1 failure: the provider said no" in said
    assert "It will not run" not in said


async def test_a_scheduler_that_is_off_is_named_as_the_reason(
    browser: Browser, control: FakeControl
) -> None:
    control.made.service._rules = replace(control.made.service._rules, enabled=False)
    await made(control)
    said = text_of(await browser.get("/jobs"))
    assert "no job runs" in said
    assert "It will not run: jobs are turned off (scheduler.enabled)." in said


@pytest.mark.parametrize(
    ("query", "slugs"),
    [
        ("state=paused", ["two"]),
        ("state=active&agent=helper", ["three"]),
        ("agent=main", ["one", "two"]),
        ("name=THRE", ["three"]),
        ("state=bogus&agent=%00%22&name=%00", ["one", "two", "three"]),
        ("page=0", ["one", "two", "three"]),
        ("page=x", ["one", "two", "three"]),
        ("state=failed", []),
    ],
)
async def test_the_list_is_narrowed(
    query: str, slugs: list[str], browser: Browser, control: FakeControl
) -> None:
    await made(control, "one")
    await made(control, "two", paused=True)
    await made(control, "three", agent=AgentName("helper"))
    text = (await browser.get(f"/jobs?{query}")).text
    assert [slug for slug in ("one", "two", "three") if f">{slug}</a>" in text] == slugs
    assert ("No job matches." in text) is (not slugs)


async def test_a_long_list_has_pages_that_keep_its_filter(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "SHOWN", 2)
    for number in range(5):
        await made(control, f"job-{number}")
    first = html.unescape((await browser.get("/jobs?name=job")).text)
    assert "1 to 2 of 5" in first
    assert 'href="/jobs?name=job&page=2"' in first
    assert "Previous" not in first
    last = (await browser.get("/jobs?name=job&page=3")).text
    assert "5 to 5 of 5" in last
    assert ">Next</a>" not in last
    assert "No job matches." in (await browser.get("/jobs?page=9")).text


# ---------------------------------------------------------------------------- buttons


async def test_run_now_asks_for_a_run(browser: Browser, control: FakeControl) -> None:
    """SPEC CRON-11."""
    job = await made(control)
    answer = await browser.send_form(f"/jobs/{job.id}/run")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job.id}?notice=asked")
    assert control.made.hand.asked == ["standup"]
    assert "It starts as soon as possible" in text_of(await browser.get(answer.headers["location"]))


async def test_a_run_that_needs_no_agent_is_done(browser: Browser, control: FakeControl) -> None:
    job = await made(control, payload=FixedMessage("Call Ann"))
    control.made.hand.answer = StartedNow(STARTED.occurrence, None)
    answer = await browser.send_form(f"/jobs/{job.id}/run", back="list", state="active", page="1")
    assert answer.headers["location"] == "/jobs?state=active&page=1&notice=done"


@pytest.mark.parametrize("refused", list(RunNow))
async def test_a_run_that_is_refused_is_explained(
    refused: RunNow, browser: Browser, control: FakeControl
) -> None:
    job = await made(control)
    control.made.hand.answer = refused
    answer = await browser.send_form(f"/jobs/{job.id}/run")
    assert answer.status_code == 409
    assert page._REFUSED[refused] in text_of(answer)
    assert "Prompt for the agent" in answer.text


async def test_a_job_is_paused_and_resumed(browser: Browser, control: FakeControl) -> None:
    job = await made(control)
    answer = await browser.send_form(f"/jobs/{job.id}/pause", back="list")
    assert answer.headers["location"] == "/jobs?notice=paused"
    assert (await now_of(control, job)).state is JobState.PAUSED
    assert "Resume" in (await browser.get("/jobs")).text
    answer = await browser.send_form(f"/jobs/{job.id}/resume")
    assert answer.headers["location"] == f"/jobs/{job.id}?notice=resumed"
    assert (await now_of(control, job)).state is JobState.ACTIVE


async def test_what_cannot_be_done_is_said_on_the_page_of_the_job(
    browser: Browser, control: FakeControl
) -> None:
    job = await made(control, "once", schedule=At(FRIDAY + timedelta(hours=1)), paused=True)
    control.made.clock.at += timedelta(hours=2)
    answer = await browser.send_form(f"/jobs/{job.id}/resume")
    assert answer.status_code == 422
    assert "that time is over" in text_of(answer)


async def test_a_job_is_deleted(browser: Browser, control: FakeControl) -> None:
    job = await made(control)
    answer = await browser.send_form(f"/jobs/{job.id}/delete", back="job")
    assert answer.headers["location"] == "/jobs?notice=removed"
    with pytest.raises(UnknownJob):
        await now_of(control, job)
    assert (await browser.send_form(f"/jobs/{job.id}/delete")).status_code == 404


@pytest.mark.parametrize("path", ["", "/edit"])
@pytest.mark.parametrize("job", ["none-such", "%00", "A%20B", "x" * 600, "%3Cscript%3E"])
async def test_a_job_that_is_not_there_is_404(path: str, job: str, browser: Browser) -> None:
    answer = await browser.get(f"/jobs/{job}{path}")
    assert answer.status_code == 404
    assert "<script>" not in answer.text


@pytest.mark.parametrize("action", ["run", "pause", "resume", "delete", "edit"])
async def test_an_action_on_a_job_that_is_not_there_is_404(action: str, browser: Browser) -> None:
    assert (await browser.send_form(f"/jobs/none-such/{action}")).status_code == 404


async def test_an_action_that_there_is_not_is_404(browser: Browser, control: FakeControl) -> None:
    job = await made(control)
    assert (await browser.send_form(f"/jobs/{job.id}/explode")).status_code == 404
    assert (await browser.get(f"/jobs/{job.id}/run")).status_code == 405


@pytest.mark.parametrize("path", ["/jobs/new", "/jobs/standup/edit", "/jobs/standup/run"])
async def test_what_is_no_form_is_415(path: str, browser: Browser, control: FakeControl) -> None:
    await made(control)
    headers = {"origin": "http://localhost:8420", "content-type": "application/json"}
    answer = await browser.post(path, content=b"{}", headers=headers)
    assert answer.status_code == 415
    assert control.made.hand.asked == []


# ---------------------------------------------------------------------------- one job


async def test_the_page_of_a_job_tells_everything(browser: Browser, control: FakeControl) -> None:
    """SPEC CRON-12."""
    job = await made(control, policy={"retries": 1, "backoff_s": (30.0, 60.0)}, max_runs=9)
    await ran(control.made, job, OccurrenceStatus.OK, number=1, took_s=4, output="All is well")
    await ran(control.made, job, OccurrenceStatus.FAILED, number=2, took_s=2, error="no key")
    await ran(control.made, job, OccurrenceStatus.SKIPPED, number=3, took_s=None, why=Why.NO_WORK)
    await began(control.made, job, number=4)
    said = text_of(await browser.get("/jobs/standup"))
    for part in (
        "What is new?",
        "backoff_s = 30/60, retries = 1",
        "9 runs",
        "Tue 6 Jan 2026, 09:00 (Europe/Berlin)",
        "1 (50 %)",
        "there was no work for it",
        "no key",
        "All is well",
        "$0.0123",
        "running",
        "Fri 2 Jan 2026, 13:02: failed, 2.0 s",
        "the longest: 4.0 s",
    ):
        assert part in said, part
    assert said.count("<rect") == 4


async def test_a_job_that_was_never_due_says_what_to_do(
    browser: Browser, control: FakeControl
) -> None:
    await made(control)
    said = text_of(await browser.get("/jobs/standup"))
    assert "No run yet." in said
    assert "<rect" not in said


async def test_runs_are_linked_to_their_records(browser: Browser, control: FakeControl) -> None:
    job = await made(control)
    await ran(control.made, job, OccurrenceStatus.OK)
    rows = await control.made.service.log(job.id, BY)
    text = (await browser.get("/jobs/standup")).text
    assert all(f'href="/runs/{run}"' in text for row in rows for run in row.runs)


async def test_the_history_has_pages_and_a_filter(browser: Browser, control: FakeControl) -> None:
    job = await made(control)
    for number in range(1, SHOWN + 2):
        status = OccurrenceStatus.FAILED if number == 1 else OccurrenceStatus.OK
        await ran(control.made, job, status, number=number)
    newest = html.unescape((await browser.get(f"/jobs/{job.id}")).text)
    assert newest.count('<tr id="o-') == SHOWN
    older = newest.partition(">Older")[0].rpartition('href="')[2].rstrip('"')
    oldest = html.unescape((await browser.get(older)).text)
    assert oldest.count('<tr id="o-') == 1
    assert "failed" in oldest
    assert "Newest" in oldest
    failed = (await browser.get(f"/jobs/{job.id}?status=failed")).text
    assert failed.count('<tr id="o-') == 1
    assert "No run has this status." in (await browser.get(f"/jobs/{job.id}?status=lost")).text
    assert (await browser.get(f"/jobs/{job.id}?before=x")).status_code == 422


async def test_nothing_in_a_job_runs_in_the_browser(browser: Browser, control: FakeControl) -> None:
    """SPEC SEC-1."""
    job = await made(control, name=ATTACK, payload=Prompt(ATTACK))
    await ran(control.made, job, OccurrenceStatus.FAILED, output=ATTACK, error=ATTACK)
    for path in ("/jobs", f"/jobs/{job.id}", f"/jobs/{job.id}/edit"):
        read = Reader((await browser.get(path)).text)
        assert len(read.scripts) == 1, path
        assert not read.handlers, path
        assert len(set(read.ids)) == len(read.ids), path
        assert not read.open, path


# ---------------------------------------------------------------------------- the form


async def test_a_job_is_made_by_its_form(browser: Browser, control: FakeControl) -> None:
    """SPEC CRON-1."""
    answer = await browser.send_form(
        "/jobs/new",
        **NEW | {"text": "What is new?\r\nTell me.", "retries": "1", "run_timeout_s": "60"},
    )
    assert answer.status_code == 303
    job = await control.made.service.get("standup", BY)
    assert answer.headers["location"] == f"/jobs/{job.id}?notice=made"
    spec = job.spec
    assert (spec.name, spec.schedule, spec.zone) == ("Standup", DAILY, "Europe/Berlin")
    assert spec.payload == Prompt("What is new?\nTell me.")
    assert spec.target is TargetKind.LAST
    assert spec.policy == {"retries": 1, "run_timeout_s": 60.0}


async def test_every_field_of_the_form_is_heeded(browser: Browser, control: FakeControl) -> None:
    fields = NEW | {
        "slug": "tea",
        "agent": "helper",
        "text": "Tea!",
        "model": "m:n",
        "kind": "every",
        "expression": "2h",
        "target": "telegram:-1005:7",
        "notify": "never",
        "session": "key",
        "session_key": "tea",
        "usd": "0.10",
        "max_runs": "3",
        "not_after": "in 2d",
        "source": "issues",
        "wake_heartbeat": "yes",
        "paused": "yes",
    }
    answer = await browser.send_form("/jobs/new", **fields)
    assert answer.status_code == 303, text_of(answer)
    job = await control.made.service.get("tea", BY)
    spec = job.spec
    assert job.state is JobState.PAUSED
    assert spec.payload == Prompt("Tea!", "m:n")
    assert spec.schedule == Every(timedelta(hours=2))
    assert (spec.agent, spec.notify, spec.session) == ("helper", Notify.NEVER, "tea")
    assert spec.target == Target("telegram", "default", "-1005", "7")
    assert spec.policy == {"session": "key", "usd": "0.10"}
    assert (spec.max_runs, spec.source, spec.wake_heartbeat) == (3, "issues", True)
    assert spec.not_after == FRIDAY + timedelta(days=2)


async def test_a_message_needs_no_agent(browser: Browser, control: FakeControl) -> None:
    message = NEW | {"does": "message", "text": "Tea!", "model": "m:n"}
    assert (await browser.send_form("/jobs/new", **message)).status_code == 303
    assert (await control.made.service.get("standup", BY)).spec.payload == FixedMessage("Tea!")


async def test_with_whom_a_chat_is_is_found_where_it_is_known(
    browser: Browser, control: FakeControl
) -> None:
    known = next(chat for chat in control.known_chats if chat.peer is PeerKind.GROUP)
    target = f"{known.channel}.{known.account}:{known.chat}"
    assert (await browser.send_form("/jobs/new", **NEW | {"target": target})).status_code == 303
    assert (await control.made.service.get("standup", BY)).spec.peer is PeerKind.GROUP


@pytest.mark.parametrize(
    ("wrong", "sentence", "field"),
    [
        ({"expression": ""}, "expression: enter a schedule.", "expression"),
        ({"expression": "99 * * * *"}, "Invalid cron expression", "expression"),
        ({"kind": "every", "expression": "1 h"}, "Invalid interval", "expression"),
        ({"kind": "at", "expression": "2020-01-01 09:00"}, "that time is over", "expression"),
        ({"kind": "at", "expression": "someday"}, "is not a time", "expression"),
        ({"kind": "sometimes"}, "kind: must be one of at, every, cron.", "kind"),
        ({"zone": "Berlin"}, "did you mean Europe/Berlin?", "zone"),
        ({"text": " "}, "prompt: ", "text"),
        ({"does": "command"}, "does: must be prompt or message.", "does"),
        ({"target": "nobody"}, "target: must be last, none", "target"),
        ({"notify": "loudly"}, "notify: must be one of", "notify"),
        ({"slug": "Ä"}, "slug: must be 1 to 64", "slug"),
        ({"retries": "many"}, "retries: must be a whole number", "retries"),
        ({"retries": "-1"}, "retries: must be a whole number", "retries"),
        ({"run_timeout_s": "nan"}, "run_timeout_s: must be a number", "run_timeout_s"),
        ({"usd": "much"}, "usd: must be a number", "usd"),
        ({"on_busy": "panic"}, "on_busy: must be one of", "on_busy"),
        ({"session": "key"}, "session: a session key needs", "session"),
        ({"max_runs": "0"}, "max_runs: must be at least 1.", "max_runs"),
        ({"max_runs": "9" * 5000}, "max_runs: must be a whole number", "max_runs"),
        ({"not_after": "yesterday"}, "not_after: 'yesterday' is not a time", "not_after"),
        ({"name": "a\x00b"}, "name: must not contain control characters.", "name"),
    ],
)
async def test_a_form_that_cannot_be_comes_back_as_it_was_typed(
    wrong: dict[str, str], sentence: str, field: str, browser: Browser, control: FakeControl
) -> None:
    typed = {**NEW, "name": "</textarea><b>", **wrong}
    answer = await browser.send_form("/jobs/new", **typed)
    assert answer.status_code == 422
    assert sentence in text_of(answer)
    assert (await control.made.service.search(JobQuery(), BY)).total == 0
    name = typed["name"]
    assert f'value="{html.escape(name)}"'.replace("&#x27;", "&#39;") in answer.text
    found = answer.text.partition(f'name="{field}"')[2].partition(">")[0]
    assert 'aria-invalid="true"' in found


async def test_a_short_name_that_is_taken_is_409(browser: Browser, control: FakeControl) -> None:
    await made(control)
    answer = await browser.send_form("/jobs/new", **NEW | {"slug": "standup"})
    assert answer.status_code == 409
    assert "There is a job 'standup' already." in text_of(answer)


async def test_operators_make_as_many_jobs_as_they_want(
    browser: Browser, control: FakeControl
) -> None:
    """SPEC CRON-15."""
    control.made = Jobs(most=1)
    await made(control)
    assert (await browser.send_form("/jobs/new", **NEW)).status_code == 303


async def test_without_scripts_a_button_shows_the_next_times(
    browser: Browser, control: FakeControl
) -> None:
    answer = await browser.send_form("/jobs/new", **NEW | {"do": "preview", "text": ""})
    assert answer.status_code == 200
    assert "Runs at 09:00 on Monday to Friday (Europe/Berlin)." in text_of(answer)
    assert (await control.made.service.search(JobQuery(), BY)).total == 0
    job = await made(control)
    changed = NEW | {"do": "preview", "expression": "0 7 * * *"}
    assert "at 07:00" in text_of(await browser.send_form(f"/jobs/{job.id}/edit", **changed))
    assert (await now_of(control, job)).spec.schedule == DAILY


async def test_a_form_that_was_not_changed_changes_nothing(
    browser: Browser, control: FakeControl
) -> None:
    """What a field cannot show, such as milliseconds or the origin of a grid, is kept."""
    odd = Every(timedelta(minutes=90, milliseconds=1), FRIDAY)
    job = await made(control, schedule=odd, policy={"jitter": 0.05, "usd": "0.20", "retries": 2})
    form = _typed((await browser.get(f"/jobs/{job.id}/edit")).text)
    answer = await browser.send_form(f"/jobs/{job.id}/edit", **form)
    assert answer.status_code == 303
    assert await now_of(control, job) == job


async def test_an_edit_changes_what_was_changed(browser: Browser, control: FakeControl) -> None:
    """SPEC CRON-2."""
    job = await made(control, policy={"jitter": 0.05, "retries": 2})
    form = _typed((await browser.get(f"/jobs/{job.id}/edit")).text)
    form |= {"expression": "0 7 * * *", "retries": "", "turns": "5", "text": "Anything?"}
    answer = await browser.send_form(f"/jobs/{job.id}/edit", **form)
    assert answer.headers["location"] == f"/jobs/{job.id}?notice=saved"
    after = await now_of(control, job)
    assert after.spec.schedule == Cron("0 7 * * *")
    assert after.spec.policy == {"jitter": 0.05, "turns": 5}
    assert after.spec.payload == Prompt("Anything?")
    assert after.spec.zone == "Europe/Berlin"


async def test_another_zone_moves_a_time_that_was_written_by_the_clock(
    browser: Browser, control: FakeControl
) -> None:
    job = await made(control, schedule=At(FRIDAY + timedelta(days=1)))
    form = _typed((await browser.get(f"/jobs/{job.id}/edit")).text)
    assert form["expression"] == "2026-01-03 13:00"
    await browser.send_form(f"/jobs/{job.id}/edit", **form | {"zone": "Asia/Kolkata"})
    after = await now_of(control, job)
    assert after.spec.schedule == At(FRIDAY.replace(day=3, hour=7, minute=30))


async def test_a_command_stays_what_it_is(browser: Browser, control: FakeControl) -> None:
    job = await made(control, payload=Program(("echo", "a b")))
    form = _typed((await browser.get(f"/jobs/{job.id}/edit")).text)
    assert form["text"] == "echo 'a b'"
    forged = form | {"text": "rm -rf /", "name": "Echo"}
    assert (await browser.send_form(f"/jobs/{job.id}/edit", **forged)).status_code == 303
    after = await now_of(control, job)
    assert (after.spec.payload, after.spec.name) == (Program(("echo", "a b")), "Echo")


async def test_what_somebody_else_has_changed_is_not_overwritten_unseen(
    browser: Browser, control: FakeControl
) -> None:
    job = await made(control)
    form = _typed((await browser.get(f"/jobs/{job.id}/edit")).text)
    await control.made.service.edit(job.id, JobChange(name="Theirs"), BY)
    answer = await browser.send_form(f"/jobs/{job.id}/edit", **form | {"name": "Mine"})
    assert answer.status_code == 409
    assert "The job was changed by someone else" in text_of(answer)
    assert (await now_of(control, job)).spec.name == "Theirs"
    again = _typed(answer.text)
    assert again["name"] == "Mine"
    assert (await browser.send_form(f"/jobs/{job.id}/edit", **again)).status_code == 303
    assert (await now_of(control, job)).spec.name == "Mine"


async def test_a_job_that_vanished_while_it_was_edited_can_be_made_anew(
    browser: Browser, control: FakeControl
) -> None:
    job = await made(control)
    form = _typed((await browser.get(f"/jobs/{job.id}/edit")).text)
    await control.made.service.delete(job.id, BY)
    answer = await browser.send_form(f"/jobs/{job.id}/edit", **form | {"name": "Mine"})
    assert answer.status_code == 404
    assert "You can create the job again." in text_of(answer)
    assert 'action="/jobs/new"' in answer.text
    again = _typed(answer.text)
    assert (again["name"], again["text"]) == ("Mine", form["text"])
    answer = await browser.send_form("/jobs/new", **again)
    assert answer.status_code == 303
    [anew] = (await control.made.service.search(JobQuery(), BY)).jobs
    assert (anew.spec.name, anew.id != job.id) == ("Mine", True)


async def test_an_edit_that_cannot_be_comes_back_as_it_was_typed(
    browser: Browser, control: FakeControl
) -> None:
    job = await made(control)
    form = _typed((await browser.get(f"/jobs/{job.id}/edit")).text)
    answer = await browser.send_form(f"/jobs/{job.id}/edit", **form | {"expression": "nonsense"})
    assert answer.status_code == 422
    assert _typed(answer.text)["expression"] == "nonsense"
    assert await now_of(control, job) == job


# ---------------------------------------------------------------------------- the preview


async def test_the_preview_reads_an_expression_and_shows_five_times(browser: Browser) -> None:
    """SPEC CRON-2."""
    query = {"kind": "cron", "expression": "0 9 * * 1-5", "zone": "Europe/Berlin"}
    answer = await browser.get("/jobs/preview", params=query)
    said = text_of(answer)
    assert answer.status_code == 200
    assert "<html" not in said
    assert "Runs at 09:00 on Monday to Friday (Europe/Berlin)." in said
    assert said.count("<li>") == 5
    assert "Fri 9 Jan 2026, 09:00 (Europe/Berlin)" in said


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({}, "Enter a schedule"),
        ({"expression": "<script>"}, "Invalid cron expression '<script>'"),
        ({"kind": "every", "expression": "0s"}, "must be positive"),
        ({"expression": "* * * * *", "zone": "Mars"}, "Unknown time zone 'Mars'"),
        ({"expression": "0 0 30 2 *"}, "never runs"),
        ({"expression": "0 9 * * *", "not_after": "in 1h"}, "all its times are in the past"),
    ],
)
async def test_the_preview_says_what_is_wrong_in_a_sentence(
    query: dict[str, str], said: str, browser: Browser
) -> None:
    answer = await browser.get("/jobs/preview", params=query)
    assert answer.status_code == 200
    assert said in text_of(answer)
    assert "<script>" not in answer.text


def _typed(text: str) -> dict[str, str]:
    """The fields of the form of a job as a browser would submit them."""
    form = text.partition("data-preview=")[2].partition("</form>")[0]
    typed: dict[str, str] = {}
    for piece in form.split("<input ")[1:]:
        tag = piece.partition(">")[0]
        if 'type="checkbox"' not in tag or " checked" in tag:
            typed[_attribute(tag, "name")] = _attribute(tag, "value")
    for piece in form.split("<select ")[1:]:
        options = piece.partition("</select>")[0].split("<option ")[1:]
        chosen = next((each for each in options if " selected" in each), options[0])
        typed[_attribute(piece, "name")] = _attribute(chosen, "value")
    area = form.partition("<textarea ")[2]
    shown = area.partition(">")[2].partition("</textarea>")[0].removeprefix("\n")
    typed["text"] = html.unescape(shown)
    return typed


def _attribute(tag: str, name: str) -> str:
    return html.unescape(tag.partition(f'{name}="')[2].partition('"')[0])


# ---------------------------------------------------------------------------- without a database


@pytest.fixture
def away(control: FakeControl, monkeypatch: pytest.MonkeyPatch) -> None:
    """No question about jobs is answered."""

    async def fail(*_args: object, **_facts: object) -> None:
        raise unavailable()

    for name in ("get", "search", "create", "edit", "delete", "zone", "log", "stats", "run_now"):
        monkeypatch.setattr(control.made.service, name, fail)


@pytest.mark.usefixtures("away")
@pytest.mark.parametrize("path", ["/jobs", "/jobs/new", "/jobs/standup", "/jobs/standup/edit"])
async def test_a_page_without_its_database_says_so(path: str, browser: Browser) -> None:
    answer = await browser.get(path)
    assert answer.status_code == 503
    assert "database does not answer" in text_of(answer)


@pytest.mark.usefixtures("away")
@pytest.mark.parametrize("path", ["/jobs/new", "/jobs/standup/edit"])
async def test_a_form_that_could_not_be_saved_comes_back_as_it_was_typed(
    path: str, browser: Browser
) -> None:
    long = "a long prompt\n" * 1000 + "its end"
    for more in ({}, {"do": "preview", "zone": ""}):
        answer = await browser.send_form(path, **NEW | {"text": long} | more)
        assert answer.status_code == 503 or (more and path == "/jobs/new")
        assert "The database does not answer." in text_of(answer)
        assert f'action="{path}"' in answer.text
        assert _typed(answer.text)["text"] == long


@pytest.mark.usefixtures("away")
async def test_a_preview_without_a_database_is_a_sentence_not_a_page(browser: Browser) -> None:
    query = "kind=cron&expression=0+9+*+*+*&zone="
    answer = await browser.get(f"/jobs/preview?{query}")
    assert answer.status_code == 200
    assert text_of(answer) == '<p class="problem">The database does not answer.</p>'
    assert "Runs at 09:00" in (await browser.get(f"/jobs/preview?{query}UTC")).text


async def test_what_is_wrong_is_told_beside_its_field(browser: Browser) -> None:
    """On a phone the top of the page is far away."""
    answer = await browser.send_form("/jobs/new", **NEW | {"retries": "many"})
    beside = answer.text.partition('name="retries"')[2].partition("<label")[0]
    assert "autofocus" in beside
    assert '<p class="problem" id="went-wrong">retries: must be a whole number' in beside
    answer = await browser.send_form("/jobs/new", **NEW | {"expression": "61 * * * *"})
    assert answer.text.count("61 is not from 0 to 59") == 2
    assert 'aria-describedby="preview"' in answer.text
