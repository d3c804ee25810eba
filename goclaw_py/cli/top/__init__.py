"""``goclaw top``: a live view of the gateway that fills the terminal and has keys (SPEC OPS-1)."""
