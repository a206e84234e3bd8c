"""`python -m bench.peers`: install the environments of peers, or list them."""

import sys

from bench.peers.environments import run

sys.exit(run())
