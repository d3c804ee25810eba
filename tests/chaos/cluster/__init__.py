"""Three gateways on one database, and everything that can befall them (SPEC NODE-1, IO-2, DB-3, 4).

``python -m tests.chaos.cluster --rounds 50 --seed 1`` plays rounds. In a round people write to
a bot, jobs come due and hearts beat, while gateways are killed, frozen, ended, cut off from their
database or given a wrong clock, and the database is restarted, stands still or has its rows locked.
In half of the rounds one gateway polls, in the others updates are brought to each in turn. When all
has settled and all have ended, one checker looks at what people saw, at what the agent noted and at
the rows.

* ``agent`` — the agent that answers, with a journal of its runs;
* ``script`` — what happens in a round: pure, made from a seed;
* ``frames`` — the messages of the PostgreSQL protocol: pure;
* ``lines`` — the way from each gateway to the database, which can be cut;
* ``nodes`` — gateway processes, as if each had a machine of its own;
* ``server`` — the database process;
* ``books`` — its rows, as facts;
* ``rounds`` — plays a script and has it checked;
* ``report`` — the table.
"""
