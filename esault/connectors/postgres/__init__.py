"""The sink and the look-up of PostgreSQL, and the connection that they share. Loads psycopg when asked, never before."""
