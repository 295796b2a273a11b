"""Object stores, the model hub, and telemetry of libraries."""
