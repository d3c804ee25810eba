"""What heartbeats cost, how late runs are, and whether HEARTBEAT_OK is ever seen."""
