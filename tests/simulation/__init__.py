"""Scenarios made from seeds: gateways on one database in virtual time, and what goes wrong there.

``python -m tests.simulation --seeds 10000 --seed 1`` plays that many scenarios on all processors.
In each some gateways (the real ones, on the store in memory) serve a few chats, a job and a
heartbeat, while calls of the database and of the chats are late, fail or lose their answers,
notices get lost, the provider of the agent's model is down, and gateways are killed, frozen beyond
their lease, ended and started, at some time or at one of their calls. Then everything gets time to
settle, and ``tests.chaos.invariants`` checks what the tables hold and what people saw. The same
seed makes the same scenario.

* ``plan`` — what happens in a scenario: pure, made from a seed;
* ``loop`` — virtual time for several processes, each of which can be frozen and killed;
* ``trouble`` — the fate of each call of a port; others go on between its steps;
* ``store``, ``chats``, ``agent`` — the ports, with their troubles;
* ``cluster`` — plays a plan;
* ``reading`` — the facts in the tables; ``bugs`` — what broke, and nobody expected;
* ``scenes`` — scenarios written by hand, in which one thing goes wrong;
* ``faults`` — faults that somebody could make in the product, each of which a scene must show;
* ``pool`` — many scenarios, on all processors.
"""
