"""What heartbeats cost, how late beats are, and whether HEARTBEAT_OK is ever seen."""
