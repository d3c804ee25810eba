"""Two commits side by side: the same benchmarks in turns, and the counters of both."""
