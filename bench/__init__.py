"""Benchmarks: one command, medians of several rounds, ratios against peers in the same run."""
