"""The server itself: its faults, limits and clock, and what it knows."""

from __future__ import annotations

from tests.botapi.faults import Fault, Faults
from tests.botapi.files import Blob
from tests.botapi.places import Places
from tests.botapi.records import Call, Delivery, Sighting, Transcript
from tests.botapi.rules import Json
from tests.botapi.views import Seen, SeenDraft, drafts, view
from tests.botapi.webhook import Courier
from tests.botapi.world import Hook, words_of


class Knobs(Places):
    """All controls that answer at once. ``BotApi`` has them here, ``Control`` over HTTP."""

    faults: Faults
    records: Transcript
    courier: Courier
    token_refused: bool

    def push(self, update: Json) -> int:
        """Queue an update as it is, however malformed; returns its id."""
        return self.world.updates.tell_raw(update)

    def repeat(self, count: int = 1) -> int:
        """Tell the last confirmed updates again, with the ids they had; returns how many."""
        return self.world.updates.repeat(count)

    def double(self, batches: int = 1) -> None:
        """Tell each update twice in the next batches that are not empty, or deliveries."""
        self.world.updates.doubled = batches

    def shuffle(self, batches: int = 1) -> None:
        """Tell the next batches that are not empty in reverse order."""
        self.world.updates.shuffled = batches

    def pending(self) -> int:
        """Updates that are not confirmed."""
        return len(self.world.updates.waiting)

    def fault(self, fault: Fault) -> None:
        """Let the next calls go wrong."""
        self.faults.add(fault)

    def clear_faults(self) -> None:
        """No more faults."""
        self.faults.clear()

    def revoke(self) -> None:
        """Make the token invalid."""
        self.token_refused = True
        self._notify()

    def restore(self) -> None:
        """Make the token valid again."""
        self.token_refused = False

    def skip(self, seconds: float) -> None:
        """Let this time have passed on the server: for drafts, presses and dates."""
        self.world.skipped_s += seconds
        self._notify()

    def set_webhook(self, url: str) -> None:
        """Set a webhook, as another program might have done."""
        self.world.hook = Hook(url)
        self._hook_changed()

    def route(self, public: str, to: str | list[str]) -> None:
        """Deliver what goes to the address ``public`` to ``to`` instead, on this machine.

        This is what a name server and a reverse proxy do; of several they take each in turn, and
        the next one where nobody listens or the answer is 503. ``public`` is scheme and host.
        Nothing is ever sent to another machine: a webhook that is neither routed nor loopback
        fails.
        """
        places = [to] if isinstance(to, str) else to
        self.courier.routes[public.rstrip("/")] = [place.rstrip("/") for place in places]

    def webhook_pace(self, *, timeout_s: float = 60.0, retry_s: float = 0.05) -> None:
        """How long an answer may take, and how soon a failed delivery is tried again.

        The wait doubles with each failure, up to twenty times ``retry_s``.
        """
        self.courier.timeout_s = timeout_s
        self.courier.retry_s = retry_s

    def deliveries(self) -> list[Delivery]:
        """Every attempt to hand over an update, in the order of their ends."""
        return list(self.courier.deliveries)

    @property
    def calls(self) -> list[Call]:
        return self.records.calls

    def record(self, on: bool = True) -> None:
        """Keep the transcript; off: only count, for benchmarks."""
        self.records.recording = on
        self.world.sightings.recording = on

    def transcript(
        self, method: str | None = None, *, ok: bool = False, chat: int | None = None
    ) -> list[Call]:
        """Calls in the order of their arrival; ``ok``: only those that were answered with 200."""
        return self.records.select(method, ok=ok, chat=chat)

    def counts(self) -> dict[str, int]:
        """How often each method was called."""
        return self.records.counts()

    def texts(self, chat_id: int) -> list[str]:
        """What the bot wrote in a chat, as people see it now."""
        chat = self.world.chats.get(chat_id)
        return [words_of(chat.messages[number]) for number in chat.own] if chat else []

    def view(self, chat_id: int) -> list[Seen]:
        """The messages of a chat as people see them now; none if there is no such chat."""
        chat = self.world.chats.get(chat_id)
        return view(self.world, chat) if chat else []

    def drafts(self, chat_id: int) -> list[SeenDraft]:
        """The drafts that a chat shows now."""
        chat = self.world.chats.get(chat_id)
        return drafts(self.world, chat) if chat else []

    def sightings(self, chat_id: int) -> list[Sighting]:
        """Every text of the bot that ever stood in a chat, also deleted and edited ones."""
        return self.world.sightings.of(chat_id)

    def shown_twice(self, chat_id: int) -> list[str]:
        """Texts that ever stood in more than one message of a chat."""
        return self.world.sightings.twice(chat_id)

    def file(self, file_id: str) -> Blob:
        """The content of a file that either side sent."""
        return self.world.files.content(file_id)

    def go_away(self, seconds: float) -> None:
        """End every connection and refuse new ones for this long; controls over HTTP go on."""
        raise NotImplementedError

    def _notify(self) -> None:
        """Wake everybody who waits."""
        raise NotImplementedError

    def _hook_changed(self) -> None:
        """End a poll, and begin to deliver."""
        raise NotImplementedError
