"""The audit log: who has changed what (SPEC SEC-9)."""
