"""The way of rows into a table, and Spark on it."""
