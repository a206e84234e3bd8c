"""The rate of the Spark engine by the number of workers of its cluster."""
