"""The programming model: what a user writes, from a spout to the frozen plan of a whole topology.

It owns the base classes (`spout`, `bolt`, `sink`, `grouping`), the builder (`builder`, `stream`, and `draft`, which
they fill), the checks that find mistakes where they are made (`arguments`, `parallelism`, `inputs`, `function`,
`factory`, `examine`), the result that all engines run (`plan`, `step`), the way from a file to a topology in any
process (`locate`, `parameters`), and its picture (`drawing`).

Every other room may import it; it imports `esault.errors` and the standard library alone. One invariant: a `Plan`
that was returned is valid, and says everything that an engine needs.
"""
