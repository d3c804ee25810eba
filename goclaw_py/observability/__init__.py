"""Metrics, traces, probes and log lines.

``prometheus``, ``opentelemetry``, ``readiness``, ``loop_lag``, ``log_lines``.
"""
