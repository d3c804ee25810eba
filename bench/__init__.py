"""Benchmarks: one command, medians of several rounds."""
