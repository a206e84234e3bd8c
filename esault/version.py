"""The version, in one place: setup.cfg reads it without importing anything else."""

VERSION = "0.1.0"
