"""A bolt of the library beside its test: what it emits and which timers it sets are kept, and the test moves its clock."""

from __future__ import annotations

from types import SimpleNamespace


def recorded(cls, *args):
    """Return an object of the class. `out`: (value, stream); `timers`: name -> time; `clock`: of `context.now` and the watermark."""

    class Recorded(cls):  # type: ignore[valid-type, misc]
        def emit(self, key, value, stream=None):
            assert key == self.key
            self.out.append((value, stream))

        def timer(self, name, at, by="event"):
            self.timers[name] = at

        def cancel_timer(self, name):
            self.timers.pop(name, None)

        def clear_state(self):
            self.timers.clear()
            self.__init__(*args)

        def come(self, *values):
            for value in values:
                self.process(self.key, value)
            return self

        def pass_(self, until):
            """The time has come up to here: timers that are due go, in order."""
            self.clock = until
            while due := [(at, name) for name, at in self.timers.items() if at <= until]:
                at, name = min(due)
                del self.timers[name]
                self.on_timer(name, at)
            return self

        def values(self, stream=None):
            return [value for value, to in self.out if to == stream]

    made = Recorded(*args)
    made.key, made.out, made.timers, made.clock = "k", [], {}, float("-inf")
    made.context = SimpleNamespace(now=lambda: made.clock, watermark=lambda key: made.clock)
    return made
