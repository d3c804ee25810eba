"""Metrics, traces and probes: ``prometheus``, ``opentelemetry``, ``readiness``, ``loop_lag``."""
