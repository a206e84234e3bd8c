"""Kafka: rates in and out beside a client of its own, and faults."""
