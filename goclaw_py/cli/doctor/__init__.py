"""``goclaw doctor``: find problems and say how to fix them (SPEC OPS-4).

A check is a function of ``DoctorFacts`` that yields findings, each problem with its fix. Checks
send no requests themselves: ``gather`` collects all answers before, within a few seconds.
"""
