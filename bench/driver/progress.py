"""A line that says how far it is and how long it will take. Drawn between runs only: during one the cores are taken."""

import sys
import time


def duration(seconds):
    """12 s, 3:05 min, 1:02 h."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes}:{seconds:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"


class Progress:
    """Writes to stderr: a bar on a terminal, else one line a round."""

    def __init__(self, rounds, runs_a_round, stream=None):
        self.stream = stream or sys.stderr
        self.rounds, self.runs = rounds, max(1, runs_a_round)
        self.done = 0
        self.started = time.monotonic()
        self.terminal = self.stream.isatty()

    def left(self):
        """Seconds, from the pace so far; None before there is one."""
        if self.done == 0:
            return None
        spent = time.monotonic() - self.started
        return spent / self.done * (self.rounds * self.runs - self.done)

    def before(self, number, what):
        """`number`: the round, from 0; `what`: that which runs now."""
        left = self.left()
        ahead = f", about {duration(left)} left" if left is not None else ""
        if self.terminal:
            width = 30
            full = int(width * self.done / (self.rounds * self.runs))
            bar = "#" * full + "." * (width - full)
            self.stream.write(f"\r\033[K[{bar}] round {number + 1} of {self.rounds}: {what}{ahead}")
        elif self.done % self.runs == 0:
            self.stream.write(f"bench: round {number + 1} of {self.rounds}{ahead}\n")
        self.stream.flush()

    def after(self):
        self.done += 1

    def end(self):
        if self.terminal:
            self.stream.write("\r\033[K")
            self.stream.flush()
