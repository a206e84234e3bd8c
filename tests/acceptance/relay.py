"""A switch between namespaces, in place of the kernel's bridge: it delays, drops and cuts what goes from host to host.

Started where one end of each host's cable is: `python relay.py HOST...`, with each host's cable at `to-HOST`. It takes whole Ethernet
frames, so control and data suffer alike, and TCP makes up for what is lost as on a real network. Orders come as lines of JSON:
`["delay", 0.03, 0.01, 0.02]` is seconds, the most that is added by chance, and the share of frames that are dropped;
`["cut", FROM, TO]` and `["heal", FROM, TO]` are one direction; each is answered by what was done so far, as `["count"]` is.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import select
import socket
import sys
import time

ETH_P_ALL, SOL_PACKET = 3, 263
PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 15, 23, 33
#: what the kernel says of checksums and segments that are still to be made; it wants the same back
VNET_HEADER = 10
#: frames of 64 KB, as the kernel hands them over before it has cut them up
LONGEST = VNET_HEADER + 65536 + 64


class Relay:
    """See the module."""

    def __init__(self, hosts: list[str]) -> None:
        self.cables = {host: cable(f"to-{host}") for host in hosts}
        self.delay = self.jitter = self.loss = 0.0
        self.cuts: set[tuple[str, str]] = set()
        self.count = {"forwarded": 0, "lost": 0, "cut": 0}
        self._where: dict[bytes, str] = {}
        #: (when, number, to, frame)
        self._under_way: list[tuple[float, int, str, bytes]] = []
        #: no frame overtakes another of the same direction
        self._last: dict[tuple[str, str], float] = {}
        self._number = 0
        self._chance = random.Random(7)
        self._orders = b""

    def run(self) -> None:
        """Until standard input ends."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        by_number = {made.fileno(): host for host, made in self.cables.items()}
        for number in by_number:
            poll.register(number, select.POLLIN)
        while True:
            left = max(0.0, self._under_way[0][0] - time.monotonic()) * 1000 if self._under_way else None
            for number, _ in poll.poll(left):
                if number == 0:
                    if not self._listen():
                        return
                else:
                    self._read(by_number[number])
            now = time.monotonic()
            while self._under_way and self._under_way[0][0] <= now:
                _, _, host, frame = heapq.heappop(self._under_way)
                try:
                    self.cables[host].send(frame)
                except OSError:
                    self.count["lost"] += 1  # its queue is full, as a switch's may be

    def _read(self, host: str) -> None:
        for _ in range(64):
            try:
                frame = self.cables[host].recv(LONGEST)
            except BlockingIOError:
                return
            to, source = frame[VNET_HEADER : VNET_HEADER + 6], frame[VNET_HEADER + 6 : VNET_HEADER + 12]
            self._where[source] = host
            known = self._where.get(to)
            for each in [known] if known is not None else self.cables:
                if each != host:
                    self._forward(host, each, frame)

    def _forward(self, host: str, to: str, frame: bytes) -> None:
        if (host, to) in self.cuts:
            self.count["cut"] += 1
        elif self._chance.random() < self.loss:
            self.count["lost"] += 1
        else:
            due = time.monotonic() + self.delay + self.jitter * self._chance.random()
            due = self._last[host, to] = max(due, self._last.get((host, to), 0.0))
            self._number += 1
            self.count["forwarded"] += 1
            heapq.heappush(self._under_way, (due, self._number, to, frame))

    def _listen(self) -> bool:
        data = os.read(0, 65536)
        *lines, self._orders = (self._orders + data).split(b"\n")
        for line in lines:
            word, *rest = json.loads(line)
            if word == "delay":
                self.delay, self.jitter, self.loss = rest
            elif word == "cut":
                self.cuts.add((rest[0], rest[1]))
            elif word == "heal":
                self.cuts.discard((rest[0], rest[1]))
            print(json.dumps(self.count), flush=True)
        return bool(data)


def cable(name: str) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    made.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    made.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    made.bind((name, ETH_P_ALL))
    made.setblocking(False)
    return made


if __name__ == "__main__":
    Relay(sys.argv[1:]).run()
