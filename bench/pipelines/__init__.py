"""The tables that `esault analyze` leaves when it is killed, and its time beside plain PySpark."""
