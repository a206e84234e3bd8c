"""Scaling of units: samples, views, policies, the guard (ARCHITECTURE idea 6).

A policy reads a frozen view that holds `now`, calls nothing, and returns actions with a reason in words. The guard
says which of them are carried out; the judge keeps the log.
"""
