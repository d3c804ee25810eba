"""Benchmarks of the scheduler: ``python -m bench.scheduler``; see ``--help``.

Each measurement is made in a fresh process of the same Python. Rounds are interleaved (A B C, A B
C, …), so that the noise of the machine hits all alike, and ratios are taken within a round.
"""
