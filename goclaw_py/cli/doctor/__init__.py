"""``goclaw doctor``: what is wrong, and what to do about it (SPEC OPS-4).

A check is a function of the ``World`` that says what it found, each problem with its cure. It asks
nobody itself: ``gather`` has done so, within a few seconds.
"""
