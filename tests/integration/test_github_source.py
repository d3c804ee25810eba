"""Issues of GitHub as work, against a server that refuses what the real one refuses (CRON-18)."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from goclaw_py.core.errors import WorkSourceError
from goclaw_py.schedule.jobs.models import WorkItem
from goclaw_py.schedule.sources.github import GitHubSource, IssueRules
from goclaw_py.schedule.sources.github_http import RepositoryAddress
from tests.support.github import (
    FRIEND_TOKEN,
    OWNER,
    OWNER_TOKEN,
    READER_TOKEN,
    REPO,
    STRANGER,
    Fault,
)
from tests.support.proxies import ProxyServer
from tests.support.work import FORGOTTEN, ONE, TWO, GitHubRig, github_rig, github_source

pytestmark = pytest.mark.real_time

CLAIM = "<!-- goclaw-claim job={job} claim=" + "0" * 32 + " -->"


@pytest.fixture
async def rig() -> AsyncIterator[GitHubRig]:
    async with github_rig() as opened:
        yield opened


def source(rig: GitHubRig, rules: IssueRules | None = None, **more: str) -> GitHubSource:
    return github_source(rig.github, rig.clock, rules, **more)


async def take(rig: GitHubRig) -> WorkItem:
    item = await rig.processes[0].claim(ONE)
    assert item is not None
    return item


async def refused(rig: GitHubRig, **more: str) -> str:
    with pytest.raises(WorkSourceError) as caught:
        await source(rig, None, **more).claim(ONE)
    assert "token-0123456789" not in f"{caught.value!r} {caught.value.__cause__!r}"
    return str(caught.value)


# ---------------------------------------------------------------------------- what people see


async def test_people_see_who_works_on_an_issue_and_what_came_of_it(rig: GitHubRig) -> None:
    issue = rig.github.open_issue("It is broken", "It broke.", "Goclaw", "bug")
    item = await take(rig)
    assert item.url == f"https://github.com/acme/shop/issues/{issue.number}"
    assert issue.labels == ["Goclaw", "bug", "in-progress"]
    (claim,) = rig.github.said(issue.number)
    assert claim.endswith("Taken by goclaw_py, job `job-1`.")
    await rig.processes[0].done(item, ok=True, text="I have repaired it.")
    assert rig.github.said(issue.number) == ["Done.\n\nI have repaired it."]
    assert (issue.labels, issue.state) == (["bug"], "open")

    failed = rig.github.open_issue("It is broken, too")
    await rig.processes[0].done(await take(rig), ok=False, text="No idea.")
    assert rig.github.said(failed.number) == ["Failed.\n\nNo idea."]
    assert (failed.labels, failed.state) == (["failed"], "open")

    deleted = rig.github.open_issue("It is gone")
    item = await take(rig)
    deleted.deleted = True
    with pytest.raises(WorkSourceError, match=f"issue {deleted.number} is gone"):
        await rig.processes[0].done(item, ok=True, text="")


async def test_an_issue_that_is_no_text_stops_no_work(rig: GitHubRig) -> None:
    """What GitHub sends is text; a proxy or another server may send anything."""
    issue = rig.github.open_issue("It is broken")
    body = rb'[{"number": %d, "state": "open", "labels": ["goclaw"], "title": "a\ud83d\u0000b", '
    body += b'"body": "c\xffd"}]'
    rig.github.faults.append(Fault(200, body=body % issue.number, method="GET", path="/issues"))
    item = await take(rig)
    assert (item.title, item.body) == ("a\ufffd\ufffdb", "c\ufffdd")
    await rig.processes[0].done(item, ok=True, text="e\udc00\0f")
    assert rig.github.said(issue.number) == ["Done.\n\ne\ufffd\ufffdf"]


@pytest.mark.parametrize("ok", [True, False])
async def test_only_what_went_well_is_closed(rig: GitHubRig, *, ok: bool) -> None:
    issue = rig.github.open_issue("It is broken")
    closing = source(rig, IssueRules(close=True, failed_label=""))
    item = await closing.claim(ONE)
    assert item is not None
    await closing.done(item, ok=ok, text="")
    assert (issue.state, issue.reason) == (("closed", "completed") if ok else ("open", None))
    assert issue.labels == []
    assert rig.github.said(issue.number) == ["Done." if ok else "Failed."]


async def test_of_what_is_released_no_trace_is_left(rig: GitHubRig) -> None:
    issue = rig.github.open_issue("It is broken")
    await rig.processes[0].give_back(await take(rig), "interrupted")
    assert (issue.labels, rig.github.said(issue.number)) == (["goclaw"], [])


async def test_labels_may_have_any_characters(rig: GitHubRig) -> None:
    labels = IssueRules(label="for: the bot/é?#&", claim_label="50% done", failed_label="a+b")
    issue = rig.github.open_issue("one", None, labels.label)
    its = source(rig, labels)
    item = await its.claim(ONE)
    assert item is not None
    assert issue.labels == [labels.label, "50% done"]
    await its.done(item, ok=False, text="")
    assert issue.labels == ["a+b"]


# ---------------------------------------------------------------------------- what is work


async def test_only_open_issues_with_the_label_are_work(rig: GitHubRig) -> None:
    rig.github.open_issue("other", None, "bug")
    rig.github.open_issue("closed").state = "closed"
    rig.github.open_issue("a pull request").is_pull_request = True
    rig.github.open_issue("deleted").deleted = True
    rig.github.open_issue("somebody does it", None, "goclaw", "In-Progress")
    assert await rig.processes[0].claim(ONE) is None
    assert rig.github.comments == {}


async def test_all_pages_are_read(rig: GitHubRig) -> None:
    for number in range(201):
        rig.github.open_issue(f"{number}", None, "goclaw", "in-progress")
    rig.github.open_issue("the last one")
    assert (await take(rig)).title == "the last one"


async def test_the_claim_counts_however_many_comments_there_are(rig: GitHubRig) -> None:
    """Also one that was made before the label was put on."""
    issue = rig.github.open_issue("a long talk")
    for number in range(250):
        rig.github.say(issue.number, f"And {number}!", STRANGER)
    first = rig.github.say(issue.number, CLAIM.format(job="other"))
    assert await rig.processes[0].claim(ONE) is None
    assert first.id in rig.github.comments
    del rig.github.comments[first.id]
    assert (await take(rig)).title == "a long talk"


async def test_only_those_who_may_write_can_claim(rig: GitHubRig) -> None:
    """Everybody may write such a comment under a public issue."""
    issue = rig.github.open_issue("chore")
    rig.github.say(issue.number, CLAIM.format(job="other"), STRANGER)
    assert await source(rig, token=FRIEND_TOKEN).claim(TWO) is not None
    assert await rig.processes[0].claim(ONE) is None


async def test_what_a_model_says_is_no_claim(rig: GitHubRig) -> None:
    """The outcome is a comment of our own, which is trusted."""
    issue = rig.github.open_issue("chore")
    await rig.processes[0].done(await take(rig), ok=False, text=CLAIM.format(job="evil"))
    issue.labels = ["goclaw"]
    assert await rig.processes[0].claim(TWO) is not None


async def test_of_two_claims_the_older_one_counts(rig: GitHubRig) -> None:
    """A rival claims the same issue after it was listed and before it is labelled."""
    issue = rig.github.open_issue("chore")

    async def rival(method: str, path: str) -> None:
        if (method, path.rpartition("/")[2]) == ("POST", "comments"):
            rig.github.meanwhile = None
            rig.github.say(issue.number, CLAIM.format(job="rival"), OWNER)

    rig.github.meanwhile = rival
    assert await rig.processes[0].claim(ONE) is None
    assert rig.github.said(issue.number) == [CLAIM.format(job="rival")]
    assert issue.labels == ["goclaw"]


@pytest.mark.parametrize("change", ["close", "unlabel", "delete"])
async def test_what_is_no_work_any_more_when_it_is_claimed_is_left_alone(
    rig: GitHubRig, change: str
) -> None:
    """The list may be older than what has become of the issue."""
    issue = rig.github.open_issue("chore")

    async def finish(method: str, path: str) -> None:
        if path.endswith("/comments"):
            issue.state = "closed" if change == "close" else "open"
            issue.deleted = change == "delete"
            if change == "unlabel":
                issue.labels = []

    rig.github.meanwhile = finish
    assert await rig.processes[0].claim(ONE) is None
    assert rig.github.said(issue.number) == []


async def test_the_rest_of_a_claim_that_was_cut_off_is_removed(rig: GitHubRig) -> None:
    issue = rig.github.open_issue("chore")
    rig.github.say(issue.number, CLAIM.format(job="job-1"), OWNER)
    rig.github.say(issue.number, CLAIM.format(job="forgotten"), OWNER)
    rig.clock.pass_by(FORGOTTEN + timedelta(seconds=1))
    rig.github.say(issue.number, CLAIM.format(job="job-1"), OWNER)
    await take(rig)
    (claim,) = rig.github.said(issue.number)
    assert "0" * 32 not in claim


# ---------------------------------------------------------------------------- refusals, troubles


async def test_what_the_settings_cannot_reach_is_told_and_leaves_no_claim(rig: GitHubRig) -> None:
    issue = rig.github.open_issue("chore")
    wrong = "wrong-token-0123456789"
    assert await refused(rig, token=wrong) == "GitHub refuses the token: Bad credentials"
    said = await refused(rig, token=READER_TOKEN)
    assert said.startswith("the token may not do this in acme/shop: Resource not accessible")
    said = await refused(rig, repo="acme/none")
    assert said == "acme/none is not there, has no issues, or is hidden from this token"
    rig.github.has_issues = False
    assert (await refused(rig)).startswith("acme/shop is not there, has no issues")
    place = RepositoryAddress("acme/shop", OWNER_TOKEN, "http://127.0.0.1:9", pause_s=0.001)
    with pytest.raises(WorkSourceError, match="GitHub cannot be reached: ClientConnectorError"):
        await GitHubSource(place, IssueRules(), rig.clock).claim(ONE)
    assert rig.github.said(issue.number) == []


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(301, {"Location": "/repositories/1/issues"}), "acme/shop has another name now"),
        (Fault(422), "GitHub does not accept this: a fault"),
        (Fault(418, body=b""), "GitHub refuses with status 418"),
        (Fault(403, body=b"<html>"), "the token may not do this in acme/shop"),
        (Fault(200, body=b"<html>"), "GitHub answered with something that is not JSON"),
        (Fault(200, body=b"{}"), "GitHub answered with something else than a list"),
        (Fault(200, body=b"[1]"), "GitHub answered with something that cannot be read"),
        (Fault(200, body=b'[{"number": "x"}]'), "GitHub answered with something that cannot"),
        (Fault(429, {"Retry-After": "900"}), "GitHub takes no more requests for 900 s: a fault"),
        (Fault(403, {"Retry-After": "60"}), "GitHub takes no more requests for 60 s"),
        (Fault(503, {"Retry-After": "600"}), "GitHub does not work now (status 503)"),
        (Fault(400, body=b'{"message": "' + b"w" * 9999 + b'"}'), "status 400: " + "w" * 200),
    ],
)
async def test_what_cannot_be_helped_is_told_at_once(
    rig: GitHubRig, fault: Fault, expected: str
) -> None:
    rig.github.faults.append(fault)
    assert expected in await refused(rig)
    assert len(rig.github.seen) == 1


async def test_a_limit_that_is_spent_is_told_with_its_end(rig: GitHubRig) -> None:
    """By our clock, as GitHub gives an instant."""
    reset = int(rig.clock.now().timestamp()) + 1234
    spent = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(reset)}
    rig.github.faults.append(Fault(403, spent))
    assert "no more requests for 1234 s" in await refused(rig)


PASSING = [
    Fault(500),
    Fault(502, body=b"<html>"),
    Fault(503, {"Retry-After": "0"}),
    Fault(429, {"Retry-After": "0"}),
    Fault(429, {"Retry-After": "soon"}),
    Fault(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}),
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: str(fault.status))
async def test_what_passes_is_waited_for(rig: GitHubRig, fault: Fault) -> None:
    """Twice at most for each request, for any of them."""
    issue = rig.github.open_issue("chore")
    rig.github.faults += [fault, fault]
    item = await take(rig)
    rig.github.faults += [fault, fault]
    await rig.processes[0].done(item, ok=True, text="done")
    assert (issue.labels, rig.github.said(issue.number)) == ([], ["Done.\n\ndone"])
    asked = len(rig.github.seen)
    rig.github.faults += [Fault(500)] * 4
    assert await refused(rig) == "GitHub does not work now (status 500)"
    assert len(rig.github.seen) == asked + 3


async def test_a_claim_that_was_made_without_an_answer_is_no_rival(rig: GitHubRig) -> None:
    """A gateway failed after the comment was stored: it is made a second time."""
    issue = rig.github.open_issue("chore")

    async def swallow(method: str, path: str) -> None:
        if method == "POST" and path.endswith("/comments"):
            rig.github.meanwhile = None
            rig.github.lose_answer = True

    rig.github.meanwhile = swallow
    await take(rig)
    assert len(rig.github.said(issue.number)) == 1


async def test_a_claim_is_taken_back_if_the_issue_cannot_be_labelled(rig: GitHubRig) -> None:
    issue = rig.github.open_issue("chore")
    rig.github.faults.append(Fault(422, method="POST", path="/labels"))
    assert "does not accept this" in await refused(rig)
    assert rig.github.said(issue.number) == []


async def test_the_token_is_shown_nowhere(rig: GitHubRig, caplog: pytest.LogCaptureFixture) -> None:
    """SPEC SEC-2: also where everything is logged."""
    caplog.set_level(logging.DEBUG)
    rig.github.open_issue("chore")
    item = await take(rig)
    await rig.processes[0].give_back(item, "interrupted")
    assert OWNER_TOKEN not in repr(RepositoryAddress("acme/shop", OWNER_TOKEN))
    assert OWNER_TOKEN not in caplog.text
    assert OWNER_TOKEN not in str(item)


@pytest.mark.parametrize("kind", ["http", "socks"])
async def test_requests_go_through_the_proxy_of_the_environment(
    rig: GitHubRig, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-15."""
    async with ProxyServer("ann", "hush-hush") as proxy:
        address = proxy.http if kind == "http" else proxy.socks
        name = f"github.test:{rig.github.port}"
        place = RepositoryAddress(REPO, OWNER_TOKEN, f"http://{name}", pause_s=0.001)
        source = GitHubSource(place, IssueRules(), rig.clock)
        monkeypatch.setenv("ALL_PROXY", address.replace("://", "://ann:hush-hush@"))
        assert await source.claim(ONE) is None
        assert set(proxy.seen) == {name}
    masked = f"the proxy {address.replace('://', '://[hidden]@')} (ALL_PROXY)"
    with pytest.raises(WorkSourceError, match=re.escape(masked)) as caught:
        await source.claim(ONE)
    assert "hush" not in str(caught.value)
    monkeypatch.setenv("ALL_PROXY", "socks4://ann:hush-hush@p")
    with pytest.raises(WorkSourceError, match="the variable ALL_PROXY must be"):
        await source.claim(ONE)


async def test_the_proxy_of_a_tunnel_does_not_read_the_token(
    rig: GitHubRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC SEC-2, CHAN-15."""
    async with ProxyServer() as proxy:
        place = RepositoryAddress(REPO, OWNER_TOKEN, "https://github.test", pause_s=0.001)
        monkeypatch.setenv("HTTPS_PROXY", proxy.http)
        proxy.refuses = 403
        with pytest.raises(WorkSourceError, match="refuses the connection: HTTP 403"):
            await GitHubSource(place, IssueRules(), rig.clock).claim(ONE)
    assert proxy.heads
    assert OWNER_TOKEN not in "".join(proxy.heads)
