"""Benches: one folder per question, rivals beside us in the same run, results as data.

`kit` has what benches share, `workloads` the loads and topologies of several, `peers` the same on other engines. Run one
with `esault bench NAME --out DIR` or `python -m bench.NAME --out DIR`. A timing never decides a test.
"""
