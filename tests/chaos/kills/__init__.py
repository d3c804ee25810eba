"""``kill -9`` during runs of a language model that pays: nothing is done or paid twice (AGENT-10).

``python -m tests.chaos.kills --kills 500 --nodes 2 --seed 1`` lets people give tasks to an agent
over Telegram. Its model answers in several responses and calls tools of an MCP server: ``pay`` must
not be repeated, ``put`` and ``look`` may be. A gateway is killed at a chosen moment and started
again, as often as asked. When everything has settled, the checker compares what model, tools and
people saw with the stored steps.

* ``script``: tasks and kills, pure, made from a seed;
* ``history``: what model and tools have seen;
* ``trap``: kills a node when a moment comes;
* ``model``, ``shop``: the model and the MCP server, both in the process of the test;
* ``records``: the rows of the database;
* ``checker``: what was wrong, pure;
* ``stage``: plays;
* ``report``: the table.
"""
