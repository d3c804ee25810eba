"""Lanes and session queues in front of any coroutine: the scheduler as a library."""
