"""``kill -9`` on a gateway that serves Telegram: nothing lost, nothing twice (SPEC IO-2, IO-5).

``python -m tests.chaos --rounds 300 --seed 1`` plays rounds over both libraries and both ways of
receiving. In a round a few people write, the gateway is killed at a chosen moment and started
again, and when everything has settled the checker looks at what people saw and at what the database
holds.

* ``agent`` — the agent that answers, with texts known beforehand;
* ``script`` — what happens in a round: pure, made from a seed;
* ``checker`` — what is wrong with what came of it: pure;
* ``books`` — the rows of the database;
* ``rounds`` — plays a script with a real gateway process and the emulator;
* ``report`` — the table.

``facts``, ``invariants``, ``time_invariants`` and ``breach`` are what must be so of any run of the
whole system; the rounds of ``cluster`` and the scenarios of ``tests.simulation`` are checked by
them, too.
"""
