"""msgspec Structs: tagged unions as values, a frozen one as part of a key's state, `convert` in a step, `structs.replace`."""

import random
from itertools import pairwise

import msgspec

from esault import Bolt, Topology, by_key, skip
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Beat(msgspec.Struct, tag="beat"):
    device: str
    at: float


class Fault(msgspec.Struct, tag="fault"):
    device: str
    code: int
    parts: list[str] = []


class Position(msgspec.Struct, frozen=True, array_like=True):
    beats: int = 0
    faults: int = 0


class Device(msgspec.Struct, kw_only=True):
    position: Position
    codes: dict[int, int] = {}
    parts: frozenset[str] = frozenset()
    longest: float | None = None


def frames(size):
    rng = random.Random(16)
    for i in range(size):
        device = f"d{rng.randrange(25)}"
        if i % 29 == 3:
            yield None, b'{"type": "noise"}'
        elif rng.random() < 0.7:
            yield None, b'{"type":"beat","device":"%s","at":%d.5}' % (device.encode(), i)
        else:
            yield None, msgspec.json.encode(Fault(device, rng.randrange(4), [rng.choice("xyz")]))


def decode(frame):
    return msgspec.json.decode(frame, type=Beat | Fault)


class Watch(Bolt):
    def __init__(self):
        self.device = Device(position=Position())
        self.last = None

    def process(self, key, value):
        d = self.device
        if isinstance(value, Beat):
            if self.last is not None:
                d.longest = max(d.longest or 0.0, value.at - self.last.at)
            self.last = value
            d.position = msgspec.structs.replace(d.position, beats=d.position.beats + 1)
        else:
            d.codes[value.code] = d.codes.get(value.code, 0) + 1
            d.parts |= {*value.parts}
            d.position = Position(d.position.beats, d.position.faults + 1)
        self.emit(key, msgspec.structs.replace(d, codes=dict(d.codes)))


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("telemetry")
    events = t.spout("frames", Paced(Items(lambda: frames(size)), rate)).map(decode, on_error=skip())
    devices = events.key_by(lambda event: event.device).bolt("watch", Watch, by_key())
    devices.sink("devices", JsonLines(f"{out}/devices.jsonl"))
    return t


def expected(size):
    rows, beats, faults = [], {}, {}
    for _, frame in frames(size):
        event = msgspec.json.decode(frame)
        if event["type"] == "noise":
            continue
        name = event["device"]
        (beats if event["type"] == "beat" else faults).setdefault(name, []).append(event)
        times = [e["at"] for e in beats.get(name, [])]
        codes = [e["code"] for e in faults.get(name, [])]
        device = Device(
            position=Position(len(times), len(codes)),
            codes={code: codes.count(code) for code in dict.fromkeys(codes)},
            parts=frozenset(e["parts"][0] for e in faults.get(name, [])),
            longest=max((b - a for a, b in pairwise(times)), default=None),
        )
        rows.append((name, device))
    return {"devices": rows}
