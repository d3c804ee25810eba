"""Invited people of the web chat, and a control that knows them."""

from __future__ import annotations

from datetime import timedelta

from goclaw_py.model.errors import AlreadyInvited, NotFound
from goclaw_py.model.web_links import NAME_RULE, is_guest_name
from goclaw_py.ports.web_guests import WebGuest, WebInvitation
from tests.unit.web.fake_approvals import FakeApprovals
from tests.unit.web.fake_post import AT

SECRET = "q0Vb3nJxT2m8sYkW5hR1uZ7cD9fL4gA6pE-oXiNvB_Q"
BEN = WebGuest("ben", AT, AT + timedelta(days=7), 2)
LEA = WebGuest("lea", AT, None, 0)


class FakeGuests(FakeApprovals):
    """The part of ``FakeControl`` that is about invited people."""

    def __init__(self) -> None:
        super().__init__()
        self.invited = [BEN, LEA]

    async def web_guests(self) -> list[WebGuest]:
        self._called("web_guests")
        return self.invited

    async def invite_web_guest(self, name: str, *, again: bool = False) -> WebInvitation:
        self._called("invite_web_guest", name, again)
        if not is_guest_name(name):
            raise ValueError(NAME_RULE)
        if any(one.name == name for one in self.invited) is not again:
            raise NotFound(f"no {name}") if again else AlreadyInvited(f"{name} is invited already")
        return WebInvitation(name, f"/join/{SECRET}", AT + timedelta(days=7))
