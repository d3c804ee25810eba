"""The pages about jobs: what they show, what their forms and buttons do (OPS-3, CRON-11)."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.errors import UnknownJob
from goclaw_py.core.ids import AgentName, JobId, Owner
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import target_text
from goclaw_py.operations.jobs.models import JobChange, JobDraft, Requester, RunNow, StartedNow
from goclaw_py.operations.jobs.page import jobs as page
from goclaw_py.operations.jobs.page.jobs import SHOWN
from goclaw_py.records import JobQuery
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import (
    OPERATOR,
    FixedMessage,
    Job,
    JobState,
    Notify,
    Program,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.schedule import At, Cron, Every
from goclaw_py.web.pages import rendering
from goclaw_py.web.pages.services import notice_of
from tests.unit.web import fake_names
from tests.unit.web.fake_jobs import FRIDAY, STARTED, Jobs
from tests.unit.web.fakes import FakeControl, unavailable
from tests.unit.web.pages.conftest import FORM, ORIGIN, Browser
from tests.unit.web.pages.past import began, ran
from tests.unit.web.pages.test_site import ATTACK, check_that_nothing_runs

BY = Requester(None)
DAILY = Cron("0 9 * * 1-5")
NEW = {"name": "Standup", "does": "prompt", "text": "What is new?"}
NEW |= {"expression": "0 9 * * 1-5", "zone": "Europe/Berlin", "target": "last", "notify": "always"}


@pytest.fixture
def jobs(control: FakeControl) -> Jobs:
    return control.made


async def made(jobs: Jobs, slug: str = "standup", **draft: Any) -> Job:
    whole = {"schedule": DAILY, "payload": Prompt("What is new?"), "zone": "Europe/Berlin", **draft}
    return await jobs.service.create(JobDraft(slug=slug, **whole), BY)


async def job_of(jobs: Jobs, name: str = "standup") -> Job:
    return await jobs.service.get(name, BY)


async def send_selected(browser: Browser, fields: Sequence[tuple[str, str]]) -> httpx.Response:
    content = urlencode(fields).encode()
    return await browser.post("/jobs/selected", content=content, headers={**ORIGIN, **FORM})


async def all_of(jobs: Jobs) -> list[Job]:
    return list((await jobs.service.search(JobQuery(), BY)).jobs)


# ---------------------------------------------------------------------------- the list


async def test_the_list_leads_to_what_each_job_costs(browser: Browser) -> None:
    await browser.says("/jobs", '<a href="/usage?by=job">Cost of each job</a>')


async def test_all_jobs_that_match_are_changed_also_on_other_pages(
    browser: Browser, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goclaw_py.operations.jobs.page.jobs.SHOWN", 2)
    monkeypatch.setattr("goclaw_py.operations.jobs.page.jobs.BATCH", 2)
    for number in range(5):
        await made(jobs, f"daily-{number}")
    await made(jobs, "other")
    await browser.says("/jobs?name=daily", "Select all 5 that match", "1 to 2 of 5")
    rows = [("rows", "name=daily"), ("every", "5"), ("do", "pause")]
    answer = await send_selected(browser, rows)
    assert answer.headers["location"] == "/jobs?name=daily&notice=paused+5+jobs"
    states = {job.spec.slug: job.state for job in await all_of(jobs)}
    assert states.pop("other") is JobState.ACTIVE
    assert set(states.values()) == {JobState.PAUSED}
    assert "all 5" not in await browser.says("/jobs?name=other")


@pytest.mark.parametrize(
    ("order", "first", "way"),
    [("", "daily-9", "ascending"), ("last_run", "daily-1", "descending"),
     ("name", "daily-0", "ascending")],
)  # fmt: skip
async def test_all_jobs_are_put_in_order_not_those_of_a_page(
    browser: Browser, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, order: str, first: str, way: str
) -> None:
    monkeypatch.setattr("goclaw_py.operations.jobs.page.jobs.SHOWN", 2)
    await ran(jobs, await made(jobs, "daily-1"), OccurrenceStatus.OK)
    await made(jobs, "daily-0")
    await made(jobs, "daily-9", schedule=Cron("0 8 * * *"))
    query = f"?order={order}" if order else ""
    said = await browser.says(f"/jobs{query}", "1 to 2 of 3")
    assert f">{first}</bdi>" in said.partition("<tbody>")[2].partition("</tr>")[0]
    assert f'aria-sort="{way}"><a href="/jobs{query}" data-sort' in said
    assert said.count("data-sort ") == 3
    assert f'href="/jobs{query}{"&" if order else "?"}page=2">Next' in said


async def test_without_jobs_a_newcomer_is_told_how_to_make_one(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a link for those who may not."""
    told = ("There are no jobs yet.", "goclaw jobs add standup", 'href="/jobs/new"')
    await browser.says("/jobs", *told)
    monkeypatch.setattr(rendering, "may", lambda _actor, _method, path: path != "/jobs/new")
    said = await browser.says("/jobs", "<p>Ask your agent in a chat")
    assert 'href="/jobs/new"' not in said[said.index('id="live"') :]


async def test_a_job_is_listed_in_words_and_in_its_own_zone(browser: Browser, jobs: Jobs) -> None:
    await ran(jobs, await made(jobs, name="Daily standup"), OccurrenceStatus.OK)
    await browser.says(
        "/jobs", "Daily standup", "at 09:00 on Monday to Friday (Europe/Berlin)",
        "Mon 5 Jan 2026, 09:00 (Europe/Berlin)", "2026-01-02 12:01:00 UTC",
        "prompt: What is new?",
    )  # fmt: skip


async def test_the_list_says_why_a_job_does_not_run(browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs)
    await jobs.service.edit(job.id, JobChange(state=JobState.PAUSED), BY)
    await browser.says("/jobs", "It will not run: paused.")
    await ran(jobs, await made(jobs, "bad"), OccurrenceStatus.FAILED, error="the provider said no")
    said = await browser.says("/jobs?name=bad", "1 failure: the provider said no")
    assert "It will not run" not in said
    jobs.service.rules = replace(jobs.service.rules, enabled=False)
    off = "It will not run: jobs are turned off (scheduler.enabled)."
    await browser.says("/jobs?name=bad", "no job runs", off)


@pytest.mark.parametrize(("query", "slugs"), [
    ("state=paused", ["two"]), ("state=active&agent=helper", ["three"]),
    ("agent=main", ["one", "two"]), ("name=THRE", ["three"]),
    ("name=%00", ["one", "two", "three"]), ("agent=former", []),
    ("page=0", ["one", "two", "three"]), ("page=x", ["one", "two", "three"]),
    ("state=failed", []), ("kind=cron", ["one", "two", "three"]), ("kind=at", []),
    ("owner=operator", ["one", "two", "three"]), ("owner=telegram:direct:7", []),
    ("name=" + "%25" * 9999, []), ("name=t_o", []), ("name=%E2%80%AE<b>", []),
])  # fmt: skip
async def test_jobs_are_found(query: str, slugs: list[str], browser: Browser, jobs: Jobs) -> None:
    await made(jobs, "one")
    await made(jobs, "two", paused=True)
    await made(jobs, "three", agent=AgentName("helper"))
    text = (await browser.get(f"/jobs?{query}")).text
    assert [slug for slug in ("one", "two", "three") if f"<bdi>{slug}</bdi></a>" in text] == slugs
    assert ("No job matches." in text) is (not slugs)


async def test_the_tabs_count_the_jobs_that_match(browser: Browser, jobs: Jobs) -> None:
    await made(jobs, "one")
    await made(jobs, "two", paused=True)
    await made(jobs, "three", agent=AgentName("helper"))
    said = await browser.says(
        "/jobs?state=paused&agent=main", "all <small>2<", "active <small>1<", "paused <small>1<"
    )
    assert "failed <small>0<" in said
    await browser.says("/jobs?owner=operator&state=paused", 'href="/jobs?owner=operator"')


async def test_a_long_list_has_pages_that_keep_its_filter(
    browser: Browser, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "SHOWN", 2)
    for number in range(5):
        await made(jobs, f"job-{number}")
    first = await browser.says("/jobs?name=job", "1 to 2 of 5", 'href="/jobs?name=job&page=2"')
    assert "Previous" not in first
    assert ">Next</a>" not in await browser.says("/jobs?name=job&page=3", "5 to 5 of 5")
    await browser.says("/jobs?page=9", "No job matches.")


# ---------------------------------------------------------------------------- buttons


async def test_run_now_asks_for_a_run(browser: Browser, jobs: Jobs) -> None:
    """SPEC CRON-11."""
    job = await made(jobs)
    await browser.leads(f"/jobs/{job.id}/run", f"/jobs/{job.id}?notice=asked+this+job")
    assert jobs.runner.asked == ["standup"]
    await browser.says("/jobs?notice=asked+job+standup", "Requested a run of job standup.")
    message = await made(jobs, "tea", payload=FixedMessage("Call Ann"))
    jobs.runner.answer = StartedNow(STARTED.occurrence, None)
    place = "/jobs?state=active&page=1&notice=done+job+tea"
    rows = "state=active&page=1&next=http://x"
    await browser.leads(f"/jobs/{message.id}/run", place, back="list", rows=rows)


@pytest.mark.parametrize("refused", list(RunNow))
async def test_a_refused_run_is_explained(refused: RunNow, browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs)
    jobs.runner.answer = refused
    said = (page._REFUSED[refused], "Prompt for the agent")
    await browser.refuses(f"/jobs/{job.id}/run", 409, *said)


async def test_a_job_is_paused_resumed_and_deleted(browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs)
    await browser.leads(f"/jobs/{job.id}/pause", "/jobs?notice=paused+job+standup", back="list")
    assert (await job_of(jobs)).state is JobState.PAUSED
    await browser.says(f"/jobs/{job.id}", ">Resume</button>")
    await browser.leads(f"/jobs/{job.id}/resume", f"/jobs/{job.id}?notice=resumed+this+job")
    assert (await job_of(jobs)).state is JobState.ACTIVE
    await browser.leads(
        f"/jobs/{job.id}/delete", "/jobs?notice=job-deleted+job+standup", back="job"
    )
    with pytest.raises(UnknownJob):
        await job_of(jobs, job.id)
    await browser.refuses(f"/jobs/{job.id}/delete", 404)


async def test_selected_jobs_are_run_paused_resumed_and_deleted(
    browser: Browser, jobs: Jobs
) -> None:
    one, two, three = [(await made(jobs, slug)).id for slug in ("one", "two", "three")]
    ids = [("job", one), ("job", two), ("rows", "agent=main&page=1&next=http://x")]
    place = "/jobs?agent=main&page=1&notice="

    async def act(action: str, notice: str) -> None:
        answer = await send_selected(browser, [*ids, ("do", action)])
        assert (answer.status_code, answer.headers["location"]) == (303, place + notice)

    await act("run", "asked+2+jobs")
    assert jobs.runner.asked == ["one", "two"]
    await act("pause", "paused+2+jobs")
    assert [job.state for job in await all_of(jobs)] == ["active", "paused", "paused"]
    await act("resume", "resumed+2+jobs")
    assert {job.state for job in await all_of(jobs)} == {JobState.ACTIVE}
    await act("delete", "job-deleted+2+jobs")
    assert [job.id for job in await all_of(jobs)] == [three]


async def test_selected_jobs_that_are_not_changed_are_counted(browser: Browser, jobs: Jobs) -> None:
    """Others of the selection are changed nevertheless; nothing is wrong, and no address long."""
    kept, over = await made(jobs, "kept"), await made(jobs, "over", paused=True)
    gone = await made(jobs, "gone")
    await jobs.service.delete(gone.id, BY)

    async def act(action: str, *chosen: Job) -> str:
        ids = [("job", job.id) for job in chosen]
        answer = await send_selected(browser, [*ids, ("do", action)])
        assert answer.status_code == 303
        return await browser.says(answer.headers["location"])

    said = await act("pause", kept, over, gone)
    assert (await job_of(jobs, kept.id)).state is JobState.PAUSED
    assert "Paused 1 job; 1 was paused already; 1 was deleted already" in said
    assert "Not changed" not in said
    more = [await made(jobs, f"more-{number}") for number in range(3)]
    assert "Nothing changed: 3 were active already" in await act("resume", *more)
    over = replace(over, state=JobState.COMPLETED, next_run_at=None, revision=1)
    assert await jobs.store.change_job(over, most=None)
    assert "Requested a run of 2 jobs; 1 had ended" in await act("run", *more[:2], over)
    assert jobs.runner.asked == ["more-0", "more-1"]


async def test_selected_jobs_that_refuse_are_counted_and_some_named(
    browser: Browser, jobs: Jobs
) -> None:
    some = [await made(jobs, f"job-{n}", name=f"Job & {n}") for n in range(page.MOST_STALE + 2)]
    jobs.runner.answer = RunNow.AT_CAPACITY
    answer = await send_selected(browser, [*(("job", job.id) for job in some), ("do", "run")])
    said = await browser.says(answer.headers["location"], "Nothing changed: 7 were refused")
    assert said.count(page._REFUSED[RunNow.AT_CAPACITY]) == page.MOST_STALE
    once = await made(jobs, "once", schedule=At(FRIDAY + timedelta(hours=1)), paused=True)
    jobs.clock.at += timedelta(hours=2)
    answer = await send_selected(browser, [("job", once.id), ("do", "resume")])
    await browser.says(answer.headers["location"], "it is still paused.", "1 was refused")
    assert "Not changed" not in await browser.says("/jobs?stale=%00:x,<b>:y,none")


def test_the_notice_of_an_address_says_only_what_we_say() -> None:
    assert notice_of("paused 1,001 jobs; 2 were paused already") == (
        "Paused 1,001 jobs; 2 were paused already."
    )
    assert notice_of("unchanged 1 was active already") == "Nothing changed: 1 was active already."
    for text in ("paused 3 jobs; call 555 now", "unchanged <b>", "paused 3 jobs; 1 was a b"):
        assert notice_of(text) == ""


async def test_a_selected_job_is_found_by_its_whole_id(browser: Browser, jobs: Jobs) -> None:
    """Also if the ids of others begin with it, or if they and not this one are the operator's."""
    for name, owner in (("job-1", Owner("ann")), ("job-10", OPERATOR)):
        job = await made(jobs, f"slug-{name}")
        await jobs.service.delete(job.id, BY)
        await jobs.store.add_job(replace(job, id=JobId(name), owner=owner), most=None)
    assert (await browser.get("/jobs/job-1")).status_code == 200
    answer = await send_selected(browser, [("job", "job-1"), ("do", "pause")])
    assert answer.headers["location"] == "/jobs?notice=paused+1+job"
    found = {job.id: job.state for job in await all_of(jobs)}
    assert found == {"job-1": JobState.PAUSED, "job-10": JobState.ACTIVE}


async def test_only_jobs_of_a_page_are_changed_at_once(browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs)
    many: list[tuple[str, str]] = [("job", f"{number:036}") for number in range(SHOWN + 1)]
    for fields in (
        [("job", job.id), ("do", "explode")], [("job", job.id)], [*many, ("do", "delete")],
    ):  # fmt: skip
        answer = await send_selected(browser, fields)
        assert answer.status_code == 422
    # By their ids only: what names several jobs, or another one, changes none.
    answer = await send_selected(browser, [("job", "standup"), ("do", "delete")])
    assert answer.headers["location"] == "/jobs?notice=unchanged+1+was+deleted+already"
    assert await all_of(jobs) == [job]


async def test_what_cannot_be_done_is_said_on_its_page(browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs, "once", schedule=At(FRIDAY + timedelta(hours=1)), paused=True)
    jobs.clock.at += timedelta(hours=2)
    await browser.refuses(f"/jobs/{job.id}/resume", 422, "that time is over")


@pytest.mark.parametrize("job", ["none-such", "%00", "A%20B", "x" * 600, "%3Cscript%3E"])
async def test_a_job_that_is_not_there_is_404(job: str, browser: Browser) -> None:
    for path in (f"/jobs/{job}", f"/jobs/{job}/edit"):
        answer = await browser.get(path)
        assert (answer.status_code, "<script>" in answer.text) == (404, False)


async def test_what_cannot_be_asked_of_a_job_is_refused(browser: Browser, jobs: Jobs) -> None:
    await made(jobs)
    for action in ("run", "pause", "resume", "delete", "edit"):
        await browser.refuses(f"/jobs/none-such/{action}", 404)
    await browser.refuses("/jobs/standup/explode", 404)
    assert (await browser.get("/jobs/standup/run")).status_code == 405
    for path in ("/jobs/new", "/jobs/standup/edit", "/jobs/standup/run"):
        headers = {**ORIGIN, "content-type": "application/json"}
        assert (await browser.post(path, content=b"{}", headers=headers)).status_code == 415
    assert jobs.runner.asked == []


# ---------------------------------------------------------------------------- one job


async def test_the_page_of_a_job_tells_everything(browser: Browser, jobs: Jobs) -> None:
    """SPEC CRON-12."""
    job = await made(jobs, policy={"retries": 1, "backoff": (30.0, 60.0)}, max_runs=9)
    assert "<rect" not in await browser.says("/jobs/standup", "No run yet.")
    await ran(jobs, job, OccurrenceStatus.OK, number=1, took_s=4, output="All is well")
    await ran(jobs, job, OccurrenceStatus.FAILED, number=2, took_s=2, error="no key")
    await ran(jobs, job, OccurrenceStatus.SKIPPED, number=3, took_s=None, why=Why.NO_WORK)
    await began(jobs, job, number=4)
    said = await browser.says(
        "/jobs/standup",
        *("What is new?", "backoff = 30s, 1m; retries = 1", "9 runs"),
        *("Tue 6 Jan 2026, 09:00 (Europe/Berlin)", "1 (50 %)", "there was no work for it"),
        *("no key", "All is well", "$0.0123", "running"),
        *("Fri 2 Jan 2026, 13:02 (Europe/Berlin): failed, 2 s", "the longest: 4 s"),
    )
    assert said.count("<rect") == 4
    for row in await jobs.service.log(job.id, BY):
        assert all(f'href="/runs/{run}"' in said for run in row.runs)


async def test_the_history_has_pages_and_a_filter(browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs)
    for number in range(1, SHOWN + 2):
        status = OccurrenceStatus.FAILED if number == 1 else OccurrenceStatus.OK
        await ran(jobs, job, status, number=number)
    newest = await browser.says(f"/jobs/{job.id}")
    assert newest.count('<tr id="o-') == SHOWN
    older = newest.partition(">Older")[0].rpartition('href="')[2].rstrip('"')
    oldest = await browser.says(older, "failed", "Newest")
    assert oldest.count('<tr id="o-') == 1
    assert (await browser.says(f"/jobs/{job.id}?status=failed")).count('<tr id="o-') == 1
    await browser.says(f"/jobs/{job.id}?status=lost", "No run has this status.")
    assert (await browser.get(f"/jobs/{job.id}?before=x")).status_code == 422


async def test_nothing_in_a_job_runs_in_the_browser(browser: Browser, jobs: Jobs) -> None:
    """SPEC SEC-1."""
    job = await made(jobs, name=ATTACK, payload=Prompt(ATTACK))
    await ran(jobs, job, OccurrenceStatus.FAILED, output=ATTACK, error=ATTACK)
    for path in ("/jobs", f"/jobs/{job.id}", f"/jobs/{job.id}/edit"):
        check_that_nothing_runs((await browser.get(path)).text)


# ---------------------------------------------------------------------------- the form


async def test_a_job_is_made_by_its_form(browser: Browser, jobs: Jobs) -> None:
    """SPEC CRON-1."""
    fields = NEW | {"text": "What is new?\r\nTell me.", "retries": "1", "run_timeout": "60"}
    answer = await browser.send_form("/jobs/new", **fields)
    job = await job_of(jobs)
    place = f"/jobs/{job.id}?notice=made"
    assert (answer.status_code, answer.headers["location"]) == (303, place)
    spec = job.spec
    assert (spec.name, spec.schedule, spec.zone) == ("Standup", DAILY, "Europe/Berlin")
    assert (spec.payload, spec.target) == (Prompt("What is new?\nTell me."), TargetKind.LAST)
    assert spec.policy == {"retries": 1, "run_timeout": 60.0}


async def test_every_field_of_the_form_is_heeded(browser: Browser, jobs: Jobs) -> None:
    fields = NEW | {"slug": "tea", "agent": "helper", "text": "Tea!", "model": "m:n"}
    fields |= {"expression": "2h", "target": "telegram:-1005:7"}
    fields |= {"notify": "never", "session": "key", "session_key": "tea", "usd": "0.10"}
    fields |= {"max_runs": "3", "not_after": "in 2d", "source": "issues"}
    fields |= {"wake_heartbeat": "yes", "paused": "yes"}
    answer = await browser.send_form("/jobs/new", **fields)
    assert answer.status_code == 303, answer.text
    job = await job_of(jobs, "tea")
    spec = job.spec
    assert job.state is JobState.PAUSED
    assert (spec.payload, spec.schedule) == (Prompt("Tea!", "m:n"), Every(timedelta(hours=2)))
    assert (spec.agent, spec.notify, spec.session) == ("helper", Notify.NEVER, "tea")
    assert spec.target == Target("telegram", "default", "-1005", "7")
    assert spec.policy == {"session": "key", "usd": "0.10"}
    assert (spec.max_runs, spec.source, spec.wake_heartbeat) == (3, "issues", True)
    assert spec.not_after == FRIDAY + timedelta(days=2)


async def test_a_message_needs_no_agent(browser: Browser, jobs: Jobs) -> None:
    message = NEW | {"does": "message", "text": "Tea!", "model": "m:n"}
    assert (await browser.send_form("/jobs/new", **message)).status_code == 303
    assert (await job_of(jobs)).spec.payload == FixedMessage("Tea!")


async def test_with_whom_a_chat_is_may_be_known(browser: Browser, control: FakeControl) -> None:
    known = next(chat for chat in control.crowd.known_chats if chat.peer is PeerKind.GROUP)
    target = f"{known.channel}.{known.account}:{known.chat}"
    assert (await browser.send_form("/jobs/new", **NEW | {"target": target})).status_code == 303
    assert (await job_of(control.made)).spec.peer is PeerKind.GROUP


@pytest.mark.parametrize(("wrong", "sentence"), [
    ({"expression": ""}, "Enter a schedule."),
    ({"expression": "99 * * * *"}, "Invalid cron expression"),
    ({"expression": "1 h"}, "Invalid interval"),
    ({"expression": "2020-01-01 09:00"}, "that time is over"),
    ({"expression": "someday"}, "is not a time"),
    ({"zone": "Berlin"}, "did you mean Europe/Berlin?"),
    ({"text": " "}, "Is required."),
    ({"does": "command"}, "Must be prompt or message."),
    ({"target": "nobody"}, "Must be last, none"),
    ({"notify": "loudly"}, "Must be one of"),
    ({"slug": "Ä"}, "Must be 1 to 64"),
    ({"retries": "many"}, "Must be a whole number"),
    ({"retries": "-1"}, "Must be a whole number"),
    ({"run_timeout": "nan"}, "Must be a time such as"),
    ({"usd": "much"}, "Must be a number"),
    ({"on_busy": "panic"}, "Must be one of"),
    ({"session": "key"}, "A session key needs"),
    ({"max_runs": "0"}, "Must be at least 1."),
    ({"max_runs": "9" * 5000}, "Must be a whole number"),
    ({"not_after": "yesterday"}, "'yesterday' is not a time"),
    ({"name": "a\x00b"}, "Must not contain control characters."),
])  # fmt: skip
async def test_a_form_that_cannot_be_comes_back_as_it_was_typed(
    wrong: dict[str, str], sentence: str, browser: Browser, jobs: Jobs
) -> None:
    """The first field of ``wrong`` is marked."""
    typed = {**NEW, "name": "</textarea><b>", **wrong}
    text = await browser.refuses("/jobs/new", 422, sentence, **typed)
    assert await all_of(jobs) == []
    assert f'value="{html.escape(typed["name"])}"'.replace("&#x27;", "&#39;") in text
    field = text.partition(f'name="{next(iter(wrong))}"')[2].partition(">")[0]
    assert 'aria-invalid="true"' in field
    # Found by use: it stood at the field and above the form.
    assert html.unescape(text).count(sentence) == 1


async def test_a_short_name_that_is_taken_is_409(browser: Browser, jobs: Jobs) -> None:
    await made(jobs)
    taken = "There is a job 'standup' already."
    await browser.refuses("/jobs/new", 409, taken, **NEW | {"slug": "standup"})


async def test_operators_make_as_many_as_they_want(browser: Browser, control: FakeControl) -> None:
    """SPEC CRON-15."""
    control.made = Jobs(most=1)
    await made(control.made)
    assert (await browser.send_form("/jobs/new", **NEW)).status_code == 303


async def test_without_scripts_a_button_shows_the_next_times(browser: Browser, jobs: Jobs) -> None:
    times = "Runs at 09:00 on Monday to Friday (Europe/Berlin)."
    await browser.refuses("/jobs/new", 200, times, **NEW | {"do": "preview", "text": ""})
    assert await all_of(jobs) == []
    job = await made(jobs)
    changed = NEW | {"do": "preview", "expression": "0 7 * * *"}
    await browser.refuses(f"/jobs/{job.id}/edit", 200, "at 07:00", **changed)
    assert (await job_of(jobs)).spec.schedule == DAILY


async def form_of(browser: Browser, job: Job) -> tuple[str, dict[str, str]]:
    """Where the form for a job is sent, and what is in its fields."""
    path = f"/jobs/{job.id}/edit"
    return path, _typed((await browser.get(path)).text)


async def test_a_form_that_was_not_changed_changes_nothing(browser: Browser, jobs: Jobs) -> None:
    """What a field cannot show, such as milliseconds or the origin of a grid, is kept."""
    odd = Every(timedelta(minutes=90, milliseconds=1), FRIDAY)
    job = await made(jobs, schedule=odd, policy={"jitter": 0.05, "usd": "0.20", "retries": 2})
    path, form = await form_of(browser, job)
    assert (await browser.send_form(path, **form)).status_code == 303
    assert await job_of(jobs) == job


async def test_an_edit_changes_what_was_changed(browser: Browser, jobs: Jobs) -> None:
    """SPEC CRON-2."""
    job = await made(jobs, policy={"jitter": 0.05, "retries": 2})
    path, form = await form_of(browser, job)
    form |= {"expression": "0 7 * * *", "retries": "", "turns": "5", "text": "Anything?"}
    await browser.leads(path, f"/jobs/{job.id}?notice=saved", **form)
    spec = (await job_of(jobs)).spec
    assert (spec.schedule, spec.zone) == (Cron("0 7 * * *"), "Europe/Berlin")
    assert (spec.policy, spec.payload) == ({"jitter": 0.05, "turns": 5}, Prompt("Anything?"))


async def test_another_zone_moves_a_time_by_the_clock(browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs, schedule=At(FRIDAY + timedelta(days=1)))
    path, form = await form_of(browser, job)
    assert form["expression"] == "2026-01-03 13:00"
    await browser.send_form(path, **form | {"zone": "Asia/Kolkata"})
    assert (await job_of(jobs)).spec.schedule == At(FRIDAY.replace(day=3, hour=7, minute=30))


async def test_a_command_stays_what_it_is(browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs, payload=Program(("echo", "a b")))
    path, form = await form_of(browser, job)
    assert form["text"] == "echo 'a b'"
    forged = form | {"text": "rm -rf /", "name": "Echo"}
    assert (await browser.send_form(path, **forged)).status_code == 303
    spec = (await job_of(jobs)).spec
    assert (spec.payload, spec.name) == (Program(("echo", "a b")), "Echo")


async def test_what_others_changed_is_not_overwritten_unseen(browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs)
    path, form = await form_of(browser, job)
    await jobs.service.edit(job.id, JobChange(name="Theirs"), BY)
    changed = ("The job was changed by someone else in the meantime.", "Your input is below")
    again = _typed(await browser.refuses(path, 409, *changed, **form | {"name": "Mine"}))
    assert ((await job_of(jobs)).spec.name, again["name"]) == ("Theirs", "Mine")
    assert (await browser.send_form(path, **again)).status_code == 303
    assert (await job_of(jobs)).spec.name == "Mine"


async def test_a_job_that_vanished_can_be_created_again(browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs)
    path, form = await form_of(browser, job)
    await jobs.service.delete(job.id, BY)
    told = ("You can create the job again.", 'action="/jobs/new"')
    again = _typed(await browser.refuses(path, 404, *told, **form | {"name": "Mine"}))
    assert (again["name"], again["text"]) == ("Mine", form["text"])
    assert (await browser.send_form("/jobs/new", **again)).status_code == 303
    [anew] = await all_of(jobs)
    assert (anew.spec.name, anew.id != job.id) == ("Mine", True)


async def test_a_wrong_edit_comes_back_as_it_was_typed(browser: Browser, jobs: Jobs) -> None:
    job = await made(jobs)
    path, form = await form_of(browser, job)
    text = await browser.refuses(path, 422, **form | {"expression": "nonsense"})
    assert _typed(text)["expression"] == "nonsense"
    assert await job_of(jobs) == job


# ---------------------------------------------------------------------------- the preview


async def test_the_preview_reads_an_expression_and_shows_five_times(browser: Browser) -> None:
    """SPEC CRON-2."""
    said = await browser.says(
        "/jobs/preview?expression=0+9+*+*+1-5&zone=Europe/Berlin",
        "Runs at 09:00 on Monday to Friday (Europe/Berlin).",
        "Fri 9 Jan 2026, 09:00 (Europe/Berlin)",
    )
    assert ("<html" in said, said.count("<li>")) == (False, 5)


@pytest.mark.parametrize(("query", "said"), [
    ("expression=every+1s&does=prompt", "86,400 runs a day, each with"),
    ("expression=every+1s&does=message", "86,400 runs a day."),
    ("expression=every+86s", "1,005 runs a day"),
    ("expression=*+*+*+*+*", "1,440 runs a day"),
    ("expression=*+9+*+*+*", ""), ("expression=every+90s", ""),
    ("expression=every+1s&not_after=in+5m", ""),
])  # fmt: skip
async def test_the_preview_warns_of_very_many_runs(query: str, said: str, browser: Browser) -> None:
    """Found by use: a prompt every second."""
    text = await browser.says(f"/jobs/preview?{query}", said)
    assert ("runs a day" in text) == bool(said)


async def test_chats_are_suggested_by_name(browser: Browser, control: FakeControl) -> None:
    spoke = fake_names.SPOKE.target
    control.crowd.spoke = [fake_names.SPOKE]
    control.named = KnownNames({spoke: "Ann & Bob"})
    option = f'<option value="{target_text(spoke)}" label="Ann & Bob">'
    await browser.says("/jobs/new", option)


@pytest.mark.parametrize(("query", "said"), [
    ("", "Enter a schedule"),
    ("expression=<script>", "'<script>' is not a time"),
    ("expression=0s", "must be positive"),
    ("expression=*+*+*+*+*&zone=Mars", "Unknown time zone 'Mars'"),
    ("expression=0+0+30+2+*", "never runs"),
    ("expression=0+9+*+*+*&not_after=in+1h", "all its times are in the past"),
])  # fmt: skip
async def test_the_preview_says_what_is_wrong(query: str, said: str, browser: Browser) -> None:
    await browser.says(f"/jobs/preview?{query}", said)
    assert "<script>" not in (await browser.get(f"/jobs/preview?{query}")).text


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
def away(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """No question about jobs is answered."""

    async def fail(*_args: object, **_facts: object) -> None:
        raise unavailable()

    for name in ("get", "search", "create", "edit", "delete", "zone", "log", "stats", "run_now"):
        monkeypatch.setattr(jobs.service, name, fail)


@pytest.mark.usefixtures("away")
async def test_a_page_without_its_database_says_so(browser: Browser) -> None:
    for path in ("/jobs", "/jobs/new", "/jobs/standup", "/jobs/standup/edit"):
        await browser.says(path, "database does not answer", status=503)
    query = "expression=0+9+*+*+*&zone="
    said = await browser.says(f"/jobs/preview?{query}")
    assert said == '<p class="problem">The database does not answer.</p>'
    await browser.says(f"/jobs/preview?{query}UTC", "Runs at 09:00")


@pytest.mark.usefixtures("away")
@pytest.mark.parametrize("path", ["/jobs/new", "/jobs/standup/edit"])
async def test_a_form_that_is_not_saved_comes_back_as_typed(path: str, browser: Browser) -> None:
    long = "a long prompt\n" * 1000 + "its end"
    for more in ({}, {"do": "preview", "zone": ""}):
        answer = await browser.send_form(path, **NEW | {"text": long} | more)
        assert answer.status_code == 503 or (more and path == "/jobs/new")
        assert "The database does not answer." in answer.text
        assert f'action="{path}"' in answer.text
        assert _typed(answer.text)["text"] == long


async def test_what_is_wrong_is_told_beside_its_field(browser: Browser) -> None:
    """On a phone the top of the page is far away."""
    text = await browser.refuses("/jobs/new", 422, **NEW | {"retries": "many"})
    beside = text.partition('name="retries"')[2].partition("<label")[0]
    assert "autofocus" in beside
    assert '<p class="problem" id="wrong-retries">Must be a whole number' in beside
    text = await browser.refuses("/jobs/new", 422, **NEW | {"expression": "61 * * * *"})
    assert text.count("61 is not from 0 to 59") == 1
    assert 'aria-describedby="preview"' in text
    text = await browser.refuses("/jobs/new", 422, **NEW | {"zone": "Europe/Berln"})
    assert text.count("Europe/Berln") == 2, "in its field, and below it"
    assert '<p class="problem" id="wrong-zone">' in text.partition('name="zone"')[2]


async def test_every_wrong_field_is_marked_at_once(browser: Browser) -> None:
    """Found by use: the second mistake was shown only after the first was corrected."""
    wrong = {
        "does": "message",
        "text": " ",
        "expression": "61 * * * *",
        "target": "somewhere",
        "max_runs": "many",
    }
    text = await browser.refuses("/jobs/new", 422, "correct the marked fields", **NEW | wrong)
    assert text.count('aria-invalid="true"') == len(wrong) - 1
    assert text.count("autofocus") == 1
    assert text.count("61 is not from 0 to 59") == 1


async def test_the_preview_of_an_edit_goes_on_from_the_last_run(
    browser: Browser, jobs: Jobs
) -> None:
    """An interval that is not changed is not counted from the edit."""
    job = await made(jobs, "often", schedule=Every(timedelta(hours=1)))
    jobs.clock.at += timedelta(minutes=40)
    (due, *_) = (await job_of(jobs, "often")).upcoming(jobs.service.rules.base)
    expected = f'datetime="{due:%Y-%m-%dT%H:%M:%S}'
    assert expected in (await browser.get(f"/jobs/{job.id}/edit")).text
    query = urlencode({"expression": "1h", "zone": "Europe/Berlin", "job": job.id})
    assert expected in (await browser.get(f"/jobs/preview?{query}")).text
    changed = query.replace("1h", "2h")
    assert expected not in (await browser.get(f"/jobs/preview?{changed}")).text
    unknown = query.replace(job.id, "nothing")
    assert expected not in (await browser.get(f"/jobs/preview?{unknown}")).text


async def test_an_unreadable_schedule_lists_all_kinds(browser: Browser) -> None:
    kinds = ("tomorrow 9:00", "every 10m", "0 9 * * 1-5")
    await browser.says("/jobs/preview?expression=every+banana&zone=UTC", *kinds)
