"""What operators can see: health, metrics, logs, traces, the doctor."""
