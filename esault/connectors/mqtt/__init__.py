"""MQTT 5: its client, topics as a source and as a sink."""
