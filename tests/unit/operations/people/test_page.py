"""The page of people, groups and guests of the web chat (SPEC CHAN-5, CHAN-13, OPS-3)."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.messages import Target
from goclaw_py.core.session_keys import AccessRules
from goclaw_py.records.people import code_hash
from tests.unit.web import fake_names, fake_people
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import FORM, Browser

PERSON = {"channel": "telegram", "account": "default", "sender": "42"}


async def test_whoever_talks_unapproved_can_be_denied(
    browser: Browser, control: FakeControl
) -> None:
    """CHAN-5: nobody is approved, and people and a group talk all the same."""
    group = replace(fake_names.FAMILY, allowed=None)
    control.crowd.known_chats = [fake_names.EVE, group]
    there = replace(fake_names.SPOKE.target, chat=group.chat)
    control.crowd.spoke = [fake_names.SPOKE, replace(fake_names.SPOKE, target=there)]
    text = (await browser.get("/people")).text
    assert "Eve (@eve)" in text
    assert "open to everybody" in text
    assert text.count("allowed by the settings") == 1
    assert "undecided" not in text
    assert text.count('value="no"') == 3  # one of them asks with a code
    control.crowd.spoke = [fake_names.SPOKE]
    assert "undecided" in (await browser.get("/people")).text


async def test_who_may_write_and_who_ever_wrote_is_found_with_the_reason(
    browser: Browser, control: FakeControl
) -> None:
    """CHAN-5: by the settings, also without a message; denied; removed, so that only the
    conversation is left. What the settings say goes before a decision about a chat."""
    crowd, eve = control.crowd, fake_names.EVE
    crowd.access = AccessRules(allow=frozenset({"42", "44", "45"}))
    crowd.named = {"45": "Cleo"}
    crowd.known_chats = [
        replace(eve, chat="45", allowed=False),
        replace(eve, chat="51", name="Mallory", allowed=False),
    ]
    crowd.spoke = [
        replace(fake_names.SPOKE, target=replace(fake_names.SPOKE.target, chat=one), sender_id=one)
        for one in ("45", "60")
    ]
    for search, place, words in (
        ("ann", "person-telegram-default-42", "owner approved, and by the settings"),
        ("44", "person-telegram-default-44", "owner by the settings"),
        ("cleo", "person-telegram-default-45", "owner by the settings"),
        ("mall", "chat-telegram-default-51", "denied"),
        ("60", "chat-telegram-default-60", "none: not approved"),
    ):
        for query in ({}, {"search": search}):
            text = (await browser.get("/people", params=query)).text
            assert text.count(f'id="{place}"') == 1, search
            row = text.partition(f'id="{place}"')[2].partition("</tr>")[0]
            assert words in " ".join(re.sub("<[^>]+>", " ", row).split()), search
            may_be_decided = search == "mall"
            assert ("/people/groups" in row) == may_be_decided, search
    assert "cleo" not in (await browser.get("/people", params={"search": "44"})).text.casefold()


async def test_one_of_very_many_approved_people_is_not_listed_as_unapproved(
    browser: Browser, control: FakeControl
) -> None:
    """CHAN-5."""
    first = fake_people.ANN
    control.crowd.approved = [
        replace(
            first,
            sender=replace(first.sender, id=str(number)),
            approved_at=first.approved_at - timedelta(seconds=number),
        )
        for number in range(2_001)
    ]
    control.crowd.known_chats = [
        replace(fake_names.EVE, channel=first.channel, account=first.account, chat=chat)
        for chat in ("2000", "unknown")
    ]
    text = (await browser.get("/people")).text
    assert 'id="chat-telegram-default-unknown"' in text
    assert 'id="chat-telegram-default-2000"' not in text


async def test_a_personal_link_is_shown_once_with_the_address_of_the_page(
    browser: Browser, control: FakeControl
) -> None:
    """CHAN-13."""
    headers = {**FORM, "origin": "http://localhost"}
    answer = await browser.post(
        "/people/invite", content="name=ann", headers=headers | {"host": "localhost"}
    )
    assert answer.status_code == 200
    assert (found := re.search(r'value="http://localhost(/join/[\w-]{43})"', answer.text))
    assert "Only this machine can open it" in answer.text
    assert found[1] not in (await browser.get("/people")).text
    again = await browser.send_form("/people/invite", name="ben", again="yes")
    assert re.search(r"/join/[\w-]{43}", again.text)
    assert ("invite", "ben", True) in control.calls


@pytest.mark.parametrize(("name", "status", "words"), [
    ("ben", 409, "ben is, or was, invited"), ("a b", 422, "1 to 32 characters"), ("", 422, "1 to"),
    ("<b>", 422, "1 to 32 characters"), ("x" * 4096, 422, "1 to 32 characters"),
])  # fmt: skip
async def test_a_person_is_not_invited_by_a_wrong_name(
    browser: Browser, name: str, status: int, words: str
) -> None:
    page = await browser.refuses("/people/invite", status, words, name=name)
    assert "<b>" not in page


async def test_nobody_is_invited_again_who_was_not_before(browser: Browser) -> None:
    words = "nobody called ann was invited before"
    await browser.refuses("/people/invite", 404, words, name="ann", again="yes")


async def test_people_of_the_web_chat_are_listed_apart(browser: Browser) -> None:
    page = (await browser.get("/people")).text
    assert page.count('id="guest-ben"') == 1
    assert 'id="person-web-default-ben"' not in page


async def test_no_command_and_no_setting_is_named_where_a_page_does_it(browser: Browser) -> None:
    answer = await browser.send_form("/people/approve", code="WRONG", role="guest")
    assert "goclaw people list" not in answer.text
    invited = await browser.send_form("/people/invite", name="ann")
    assert "web.token" not in invited.text


async def test_an_unknown_code_is_said_where_it_was_typed(browser: Browser) -> None:
    told = (
        *('role="alert">', "no valid pairing request has the code"),
        'value="WRONG" aria-invalid="true"',
        'data-live="/live/people"',
    )
    await browser.refuses("/people/approve", 404, *told, code="WRONG", role="guest")


async def test_who_was_forgotten_meanwhile_is_no_mistake(browser: Browser) -> None:
    gone = PERSON | {"sender": "gone"}
    await browser.leads("/people/revoke", "/people?notice=nothing", **gone)


async def test_many_people_are_listed_in_pages(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goclaw_py.operations.people.page.SHOWN", 1)
    one = control.crowd.approved[0]
    other = replace(one, sender=replace(one.sender, id="9999"))
    control.crowd.approved, control.crowd.guests = [one, other], []
    said = await browser.says("/people", f"-{one.sender.id}")
    assert "9999" not in said
    (older,) = re.findall(r'href="(/people\?before=[^"]+)"', said)
    assert 'href="/people?before' not in await browser.says(older, "9999")
    assert (await browser.get("/people?before=x")).status_code == 422


async def test_many_people_without_approval_are_listed_in_pages(
    browser: Browser, control: FakeControl
) -> None:
    control.crowd.known_chats = [
        replace(
            fake_names.EVE,
            chat=f"e{number:02}",
            last_seen_at=fake_names.EVE.last_seen_at - timedelta(minutes=number),
        )
        for number in range(15)
    ]
    said = await browser.says("/people", 'id="chat-telegram-default-e09"')
    assert 'id="chat-telegram-default-e10"' not in said
    (older,) = re.findall(r'href="(/people\?chats=[^"#]+)#unapproved"', said)
    said = await browser.says(older, 'id="chat-telegram-default-e10"', 'href="/people#unapproved"')
    assert 'id="chat-telegram-default-e09"' not in said
    assert 'href="/people?chats' not in said
    assert (await browser.get("/people?chats=x")).status_code == 422


async def test_people_are_searched_in_all_lists(browser: Browser, control: FakeControl) -> None:
    """Found by use: 72 rows, and no field to search in them."""
    other = replace(fake_people.ANN, sender=replace(fake_people.ANN.sender, id="9", name="Zoë"))
    control.crowd.approved = [fake_people.ANN, other]
    said = await browser.says("/people?search=zo%C3%AB", 'id="person-telegram-default-9"', "Zoë")
    for id_ in ("person-telegram-default-42", "asking-", "guest-", "chat-", "group-"):
        assert f'id="{id_}' not in said
    said = await browser.says("/people?search=EVE", 'id="chat-', "Nobody with access matches.")
    assert 'id="person-' not in said


async def test_a_person_leads_to_their_runs(browser: Browser) -> None:
    said = await browser.says("/people", "/runs?range=all&sender=web%2Fdefault%2Fben")
    (path,) = re.findall(r'id="person-[^"]+"><td class="wide"><a href="([^"]+)"', said)
    assert path == "/runs?range=all&sender=telegram%2Fdefault%2F42"
    assert (await browser.get(path)).status_code == 200


async def test_a_request_says_that_its_code_is_needed(browser: Browser) -> None:
    said = await browser.says("/people", 'href="#code"', ">enter it above</a>")
    assert said.index('id="code"') < said.index('href="#code"')


@pytest.mark.parametrize(("path", "fields", "call"), [
    ("approve", {"code": " AB12 ", "role": "guest"}, ("approve", code_hash("AB12"), True)),
    ("approve", {"code": "AB12", "role": "owner"}, ("approve", code_hash("AB12"), False)),
    ("revoke", PERSON, ("revoke", *PERSON.values())),
    ("groups", {"channel": "t", "account": "a", "chat": "c", "allowed": "no"},
     ("allow_chat", "t", "a", "c", False)),
])  # fmt: skip
async def test_a_button_does_what_it_says(
    browser: Browser, control: FakeControl, path: str, fields: dict[str, str], call: object
) -> None:
    answer = await browser.send_form(f"/people/{path}", **fields)
    assert answer.status_code == 303
    assert call in control.calls
    assert (await browser.get(answer.headers["location"])).status_code == 200


async def test_a_decision_says_about_whom_or_what(browser: Browser, control: FakeControl) -> None:
    """The buttons of people and groups use one form."""
    control.crowd.known_chats = [fake_names.EVE, fake_names.FAMILY]
    text = (await browser.get("/people")).text
    control.named = KnownNames({Target("telegram", "default", "-1001"): "Олег & Co"})
    control.crowd.known_chats[1] = replace(fake_names.FAMILY, name="")
    names = {"person": "Eve (@eve)", "group": "Олег &amp; Co"}
    for form, place in (("chat-telegram-default-50", "person"), ("group-", "group")):
        row = text.partition(f'id="{form}')[2].partition("</tr>")[0]
        hidden = dict(re.findall(r'name="(\w+)" value="([^"]*)"', row))
        answer = await browser.send_form("/people/groups", **hidden)
        said = (await browser.get(answer.headers["location"])).text
        assert re.findall('role="status">(D.*)</p>', said) == [f"Denied {place} {names[place]}."]


@pytest.mark.parametrize(("path", "fields"), [
    ("approve", {"code": ""}), ("approve", {"code": "AB12", "role": "king"}),
    ("revoke", {"channel": "telegram"}),
    ("groups", {"channel": "t", "account": "a", "chat": "c", "allowed": "maybe"}),
])  # fmt: skip
async def test_a_form_that_lacks_something_changes_nothing(
    browser: Browser, control: FakeControl, path: str, fields: dict[str, str]
) -> None:
    await browser.refuses(f"/people/{path}", 422, 'role="alert"', **fields)
    assert control.calls == []
