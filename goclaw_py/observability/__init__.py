"""What operators measure: ``prometheus``, ``opentelemetry``, ``readiness``, ``loop_lag``."""
