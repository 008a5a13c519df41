"""What is measured. To add a case: a program in bench/, a row here, and, if it has a goal, one in goals.py."""

from dataclasses import dataclass

from .contestants import LIMITS

REUSED = ("reused", "rewritten")
VARIANTS = (*REUSED, "alloc-reused", "alloc-rewritten")
SHORT_SIZES = [0, 8, *(4**n for n in range(3, 13))]
SIZES = [0, 1, 8, *(2**n for n in range(6, 25))]


@dataclass(frozen=True)
class Case:
    """One program, run by every contestant in every round.

    `shows`: the names of the program's values that are results, with their titles.
    `limited`: the limits are measured beside it.
    """

    name: str
    title: str
    program: str
    unit: str
    shows: dict
    ranks: tuple = (2,)
    variants: tuple = REUSED
    sizes: tuple | None = None  # None: the sizes of the command line
    slot: float = 25  # milliseconds a figure
    lower_is_better: bool = True
    limited: bool = False
    time_limit: float = 120  # seconds for one run of the program

    def arguments(self, options, contestant):
        variants = [name for name in options.variants if name in self.variants]
        slot = self.slot * options.slot / 25
        if contestant is LIMITS:
            variants = sorted({name.removeprefix("alloc-") for name in variants})
            slot /= 4  # it has many ways to try
        sizes = self.sizes if self.sizes is not None else options.sizes
        return [f"{slot:g}", ",".join(variants), ",".join(map(str, sizes))]


CASES = {
    case.name: case
    for case in [
        Case("latency", "Ping-pong: half a round trip", "latency", "us", {"latency": ""}, variants=VARIANTS,
             limited=True, time_limit=300),
    ]
}
