"""Scripts of the cluster are what their seed says, and ask nothing that cannot be."""

from __future__ import annotations

from itertools import combinations

from tests.chaos.cluster.script import LEASE_S, NODES, OF_DATABASE, Fault, Kind, Size, script

ROUNDS = [script("a", number, Size(people=30)) for number in range(40)]


def test_a_seed_always_means_the_same_and_another_one_something_else() -> None:
    assert script("a", 3, Size(people=30)) == ROUNDS[3] != ROUNDS[4]
    assert script("b", 3, Size(people=30)) != ROUNDS[3]


def test_everything_that_can_happen_happens_in_some_round() -> None:
    assert {kind for one in ROUNDS for kind in one.kinds} == set(Kind)
    assert {fault.node for one in ROUNDS for fault in one.faults} == {None, *range(NODES)}


def test_a_node_suffers_one_thing_at_a_time_and_the_database_one_in_a_round() -> None:
    for one in ROUNDS:
        for first, second in combinations(one.faults, 2):
            if first.node == second.node:
                assert first.until_s < second.at_s
        assert sum(fault.node is None for fault in one.faults) <= 1


def test_some_rounds_have_webhooks_and_some_poll() -> None:
    assert 10 < sum(one.webhooks for one in ROUNDS) < 30


def test_what_is_about_the_lease_outlasts_it_and_clocks_are_set_indeed() -> None:
    for fault in (fault for one in ROUNDS for fault in one.faults):
        if fault.kind in (Kind.FREEZE, Kind.SILENCE):
            assert fault.lasts_s > LEASE_S
        assert (fault.node is None) == (fault.kind in OF_DATABASE)
        assert (fault.jump_s != 0) == (fault.kind is Kind.CLOCK)


def test_only_what_is_wanted_happens() -> None:
    wanted = Size(people=5, kinds=[Kind.RESTART])
    made = [script("a", number, wanted) for number in range(20)]
    assert {fault.kind for one in made for fault in one.faults} == {Kind.RESTART}
    assert all(len(one.users) == 5 for one in made)


def test_every_task_of_a_round_has_a_text_of_its_own_and_is_said_in_order() -> None:
    for one in ROUNDS:
        tasks = [saying.task for saying in one.sayings if saying.task is not None]
        assert len({task.text for task in tasks}) == len(tasks)
        times = [saying.at_s for saying in one.sayings]
        assert times == sorted(times)


def test_a_fault_tells_whom_it_befalls_and_for_how_long() -> None:
    told = str(Fault(1.5, Kind.CLOCK, 2, 7.0, jump_s=-300))
    assert told.strip() == "1.5 s: node 2: clock jumps by -300 s for 7.0 s"
    assert "database" in str(Fault(0, Kind.PAUSE, None, 1))
