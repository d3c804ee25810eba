"""Events of runs on their way to who watches: kept, sent to other nodes, streamed."""
