"""RabbitMQ: its client, its queues as a source, and exchanges as a sink."""
