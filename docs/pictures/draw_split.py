"""Draw split-under-load.svg: a unit under `auto` in a run that `esault bench policies --out DIR --only live` has recorded.

python docs/pictures/draw_split.py DIR/live.json
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
SECONDS = 190
MEAN = 5

run = json.loads(Path(sys.argv[1]).read_text())["auto"]["live"][0]
lines = [line for line in run["lines"] if line[0] < SECONDS]
bins = [lines[i : i + MEAN] for i in range(0, len(lines), MEAN)]
at = [part[0][0] for part in bins]
trace = [(t, n) for t, n in run["trace"] if t < SECONDS]
trace.append((SECONDS, trace[-1][1]))

plt.rcParams.update({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "split"})
figure, (load, width, wait) = plt.subplots(3, 1, figsize=(7.2, 4.2), sharex=True)
load.fill_between(at, [sum(line[1] for line in part) / len(part) for part in bins], step="post", color="#9ecae1")
load.set_ylabel("tuples a second")
width.step(*zip(*trace), where="post", color="#cb4335", linewidth=2)
width.set_ylabel("sub-units")
width.set_ylim(0)
wait.step(at, [1000 * sum(line[2] for line in part) / len(part) for part in bins], where="post", color="#5d6d7e")
wait.set_ylabel("mean latency, ms")
wait.set_ylim(0)
wait.set_xlabel("seconds")
for axes in (load, width, wait):
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(0, SECONDS)
figure.align_ylabels()
figure.tight_layout()
figure.savefig(HERE / "split-under-load.svg", metadata={"Date": None})
