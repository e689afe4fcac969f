"""A clock that stands still until it is moved, and that notes how long was waited by it."""

from ekphory.http_service import Clock


class SteppedClock:
    def __init__(self):
        self.time = 0.0
        self.waits = []
        self.clock = Clock(now=lambda: self.time, sleep=self._sleep)

    def _sleep(self, seconds):
        self.waits.append(seconds)
        self.time += seconds
