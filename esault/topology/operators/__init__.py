"""The bolts and functions behind the operators of a stream: `distinct`, `throttle`, `batch` and their like."""
