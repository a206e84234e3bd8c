"""Thespian, and all that keeps it in bounds. Only this room and the actors of the others import it."""
