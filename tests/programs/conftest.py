"""What these tests share: the programs and how they are compared, and the commands of the acceptance tests."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "acceptance")]
