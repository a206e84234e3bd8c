"""Benches: one file per question, rivals beside us in the same run, results as data.

Run one with `esault bench NAME --out DIR` or `python -m bench.NAME --out DIR`. A timing never decides a test.
"""
