"""Scenarios that are written by hand: in each one thing goes wrong, and nothing by chance. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from goclaw_py.scheduler.models import Mode
from tests.simulation.plan import Drain, Event, Outage, Plan, ProviderOutage, Saying, Start, Work
from tests.simulation.trouble import FOR_EVER, Fate, Forced

_TWO = (Start(0.0), Start(0.0))
_M1 = Saying(2.1, "ann", "m1")
_BEYOND_THE_LEASE_S = 14.0


def scene(
    *mishaps: Forced,
    said: tuple[Saying, ...] = (_M1,),
    work: Mapping[str, Work] | None = None,
    shared: bool = False,
    job_every_s: float | None = None,
    job_in_chat: bool = False,
    happens: tuple[Event, ...] = (),
) -> Plan:
    """Two gateways of which one polls; the agent takes 2 s for what is not in ``work``."""
    texts = dict.fromkeys((*(one.text for one in said), "report"), Work(2.0))
    return Plan(
        seed=1,
        events=tuple(sorted((*_TWO, *said, *happens), key=lambda event: event.at)),
        weight=0.0,
        polling=True,
        mode=Mode.QUEUE,
        shared=shared,
        main_lane=2,
        job_every_s=job_every_s,
        heartbeat_every_s=None,
        forced=mishaps,
        job_in_chat=job_in_chat,
        work={**texts, **(work or {})},
    )


def _first(call: str, fate: Fate, gateway: str = "") -> Forced:
    return Forced(gateway, call, 1, fate)


NOTHING = scene(work={"m1": Work(5.0)})
"""Nothing goes wrong."""

STANDS_STILL = scene(_first("finish_run", Fate(halt_s=_BEYOND_THE_LEASE_S)))
"""Who works stands still beyond its lease just before it stores the end."""

CUT_OFF = scene(_first("begin_run", Fate(cut_s=25.0)), work={"m1": Work(20.0)})
"""Who works reaches nobody for so long that another one takes the message up."""

STOPPED = scene(
    said=(_M1, Saying(4.0, "ann", "/stop"), Saying(4.5, "ann", "m2")),
    work={"m1": Work(8.0, stays_s=5.0)},
)
"""A run takes its time to end after ``/stop``, and a new message comes meanwhile."""

STOPPED_WHILE_AWAY = scene(
    happens=(Outage(3.0, for_s=15.0, one=False),),
    said=(_M1, Saying(5.0, "ann", "/stop")),
    work={"m1": Work(40.0)},
)
"""The database is away for longer than the leases, and a run is stopped meanwhile."""

FINISHED_WHILE_AWAY = scene(
    happens=(Outage(4.0, for_s=15.0, one=False),),
    said=(_M1, Saying(7.0, "ann", "/stopall")),
    work={"m1": Work(2.0)},
)
"""The database is away for longer than the leases, when a run has ended and all is stopped."""

SENT_UNHEARD = scene(_first("chat send ann", Fate(unheard=True)))
"""Nobody knows whether an answer has arrived."""

KILLED_WHILE_IT_SENDS = scene(_first("chat send ann", Fate(halt_s=FOR_EVER, halt_after=True)))
"""An answer has arrived, and who sent it knows nothing any more."""

BOTH_WOULD_SEND = scene(
    _first("claim_next", Fate(before_s=0.1), "g1"),
    _first("claim_next", Fate(before_s=0.2), "g2"),
    _first("chat send ann", Fate(after_s=5.0)),
)
"""Both gateways find an answer due before one of them has it in hand."""

ACCEPTED_UNHEARD = scene(
    _first("accept", Fate(unheard=True)),
    said=(_M1, Saying(2.5, "ann", "m2")),
    work={"m1": Work(1.0)},
)
"""Nobody knows whether a message was stored; it is brought again, with a new one behind it."""

KILLED_AS_IT_ACCEPTS = scene(_first("accept", Fate(halt_s=FOR_EVER, halt_after=True)))
"""A message is stored, and who stored it knows nothing any more."""

HELD_UP = scene(_first("claim_next", Fate(steps=(9, 0)), "g1"))
"""Both gateways find an answer due; the first one lets the other one go first."""

KILLED_AT_WORK = scene(_first("begin_run", Fate(halt_s=FOR_EVER, halt_after=True)), shared=True)
"""Who works is killed."""

KILLED_IN_A_JOB = scene(
    _first("begin_run", Fate(halt_s=FOR_EVER, halt_after=True)), said=(), job_every_s=5.0
)
"""Who does what a job wants is killed."""

SESSION_IS_ELSEWHERE = scene(
    _first("claim_due", Fate(before_s=1.0), "g1"),
    _first("begin_run", Fate(before_s=1.0), "g2"),
    said=(Saying(5.2, "ann", "m1"),),
    work={"m1": Work(5.0)},
    job_every_s=5.0,
    job_in_chat=True,
)
"""A job is about to begin in the session of a chat, and another gateway begins to answer there."""

_HELD = (_M1, Saying(2.2, "bob", "m2"))
_PROVIDER_IS_DOWN = ProviderOutage(1.0, for_s=24.0)

HELD = scene(said=_HELD, happens=(_PROVIDER_IS_DOWN,))
"""The provider is down, and messages of two chats are held."""

HELD_AND_KILLED = scene(
    Forced("", "settle", 2, Fate(halt_s=FOR_EVER, halt_after=True)),
    said=_HELD,
    happens=(_PROVIDER_IS_DOWN,),
)
"""The gateway that holds them is killed as it notifies the second chat."""

HELD_AND_RESTARTED = scene(
    said=_HELD, happens=(_PROVIDER_IS_DOWN, Drain(8.0, 0.0), Drain(8.1, 0.0), Start(9.0))
)
"""The gateways that hold them end, and another one starts."""

HELD_WHILE_AWAY = scene(said=_HELD, happens=(_PROVIDER_IS_DOWN, Outage(7.0, for_s=15.0, one=False)))
"""The database is away, too, for longer than the leases."""
