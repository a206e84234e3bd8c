"""The clients that the source and the sink of Kafka share, and the meaning of their errors. Loads confluent-kafka when asked, never before."""
