"""A browser signs in once with the token; other sites gain nothing by it (SPEC SEC-1, OPS-2)."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.web.pages.signing_in.pages import own_place
from goclaw_py.web.sign_ins import LASTS
from goclaw_py.web.signin import COOKIE, cookie_of
from tests.unit.web.pages.conftest import FORM, ORIGIN, TOKEN, Browser, World


@pytest.mark.parametrize("path", ["/", "/jobs", "/live/now", "/api/status", "/metrics"])
async def test_nothing_is_shown_without_the_token(locked: Browser, path: str) -> None:
    answer = await locked.get(path, headers={"accept": "*/*"})
    assert answer.status_code == 401
    assert "error" in answer.json()


async def test_a_person_is_asked_for_the_token_and_brought_to_the_page(locked: Browser) -> None:
    answer = await locked.get("/deliveries")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fdeliveries")
    await locked.says("/login?next=%2Fdeliveries", 'name="next" value="/deliveries"')
    signed = await locked.send_form("/login", token=TOKEN, next="/deliveries")
    assert (signed.status_code, signed.headers["location"]) == (303, "/deliveries?notice=welcome")
    cookie = signed.headers["set-cookie"]
    assert ("HttpOnly" in cookie, "SameSite=strict" in cookie, TOKEN in cookie) == (1, 1, 0)
    await locked.says("/deliveries?notice=welcome", "Signed in.")


async def test_a_wrong_token_signs_nobody_in(locked: Browser) -> None:
    for wrong in ("", "0" * 16, TOKEN + "x", "ünïcödé-0123456789"):
        answer = await locked.send_form("/login", token=wrong, next="/")
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
        assert "This is not the token." in answer.text
    assert (await locked.get("/", headers={"accept": "*/*"})).status_code == 401


async def test_another_site_cannot_use_what_a_browser_keeps(world: World, locked: Browser) -> None:
    """Neither by a form of its own, nor where the browser does not say from where it asks."""
    locked.cookies.set(COOKIE, await world.sign_in())
    assert (await locked.get("/")).status_code == 200
    # A header that only programs send must not stand for the check, if what is in it is wrong.
    for headers in ({"origin": "http://evil.example"}, {}, {"authorization": "Bearer wrong"}):
        answer = await locked.post("/stop", content=b"session=s", headers={**FORM, **headers})
        assert answer.status_code == 403
    assert ("stop", "s", False) not in world.control.calls
    assert (await locked.send_form("/stop", session="s")).status_code == 303


async def test_the_form_for_the_token_is_for_its_own_site(locked: Browser) -> None:
    """Over TLS the cookie is for TLS."""
    content = f"token={TOKEN}".encode()
    headers = {**FORM, "origin": "http://evil.example"}
    answer = await locked.post("/login", content=content, headers=headers)
    assert answer.status_code == 403
    headers["origin"] = "https://localhost:8420"
    answer = await locked.post("/login", content=content, headers=headers)
    assert "; Secure" in answer.headers["set-cookie"]


async def test_a_sign_in_ends(world: World, locked: Browser) -> None:
    locked.cookies.set(COOKIE, await world.sign_in())
    world.now_s += LASTS.total_seconds() - 1
    assert (await locked.get("/")).status_code == 200
    world.now_s += 1
    assert (await locked.get("/")).status_code == 303


async def test_whoever_leaves_is_forgotten(world: World, locked: Browser) -> None:
    locked.cookies.set(COOKIE, await world.sign_in(), domain="localhost.local")
    answer = await locked.post("/logout", headers=ORIGIN | {"authorization": f"Bearer {TOKEN}"})
    assert answer.headers["location"] == "/login?notice=left"
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert (
        '<p class="notice" role="status">Signed out.</p>'
        in (await locked.get(answer.headers["location"])).text
    )


async def test_whoever_is_in_can_leave(world: World, locked: Browser, browser: Browser) -> None:
    locked.cookies.set(COOKIE, await world.sign_in())
    for path in ("/", "/chat", "/jobs", "/nowhere"):
        assert 'action="/logout"' in (await locked.get(path)).text
        assert 'action="/logout"' not in (await browser.get(path)).text
    assert 'action="/logout"' not in (await locked.get("/login")).text


async def test_the_way_back_keeps_what_the_address_has_asked_for(locked: Browser) -> None:
    wanted = "/sessions/view?key=a%3Ab&notice=saved&path=x"
    asked = await locked.get(wanted)
    assert asked.headers["location"] == f"/login?{urlencode({'next': wanted})}"
    place = "/sessions/view?key=a%3Ab&notice=welcome&path=x"
    await locked.leads("/login", place, token=TOKEN, next=wanted)
    for elsewhere in ("//evil.example/", "javascript:alert(1)", "/\\evil.example"):
        await locked.leads("/login", "/?notice=welcome", token=TOKEN, next=elsewhere)


@pytest.mark.parametrize(("referer", "wanted"), [
    ("http://localhost:8420/sessions/view?key=a", "/sessions/view?key=a"),
    ("http://localhost:8420", "/"), ("http://[", "/"),
    ("", "/"),
])  # fmt: skip
async def test_a_form_of_who_is_signed_out_leads_to_the_question(
    world: World, locked: Browser, referer: str, wanted: str
) -> None:
    """And back to the page on which it was; nothing is done."""
    headers = {**ORIGIN, **({"referer": referer} if referer else {})}
    answer = await locked.post("/stop", content=b"session=s", headers=headers)
    assert answer.status_code == 303
    place = f"/login?{urlencode({'next': wanted, 'form': 'yes'})}"
    assert answer.headers["location"] == place
    assert world.control.calls == []
    assert "nothing was done" in await locked.says(place)
    program = await locked.post("/stop", headers={**headers, "accept": "application/json"})
    assert program.status_code == 401


async def test_without_a_token_nobody_is_asked(browser: Browser) -> None:
    assert (await browser.get("/login")).headers["location"] == "/"
    assert (await browser.send_form("/login", token="x")).headers["location"] == "/"


async def test_style_and_script_need_no_token(locked: Browser) -> None:
    for name in ("style.css", "app.js", "icon.svg"):
        assert (await locked.get(f"/static/{name}")).status_code == 200


@pytest.mark.parametrize("wanted", [
    "", "//evil.example", "https://evil.example/", "/\\evil.example", "//[", "jobs",
    "/\t/evil.example", "javascript:alert(1)", "/jobs\r\nset-cookie: a=b",
])  # fmt: skip
def test_nobody_is_sent_to_another_site(wanted: str) -> None:
    assert own_place(wanted) == "/"


@given(wanted=st.text(st.characters() | st.sampled_from("/\\[]:?#@%.")))
def test_whatever_is_wanted_the_way_leads_to_this_site(wanted: str) -> None:
    path = own_place("/" + wanted)
    assert path.startswith("/")
    assert not path.startswith(("//", "/\\"))


def test_the_cookie_is_found_among_others() -> None:
    assert cookie_of([(b"Cookie", f"a=b; {COOKIE}=x.y; c=d".encode())]) == "x.y"
    assert cookie_of([(b"cookie", f"not{COOKIE}=x".encode()), (b"host", b"h")]) == ""
