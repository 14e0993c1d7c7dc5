"""Virtual surroundings: one host with its wall clock, bells and seeded chance, and the processes that run on it."""

from __future__ import annotations

import asyncio
import contextvars
from random import Random

from penstock.contracts.faults import Faults
from penstock.contracts.presence import Bell
from penstock.contracts.store import Store
from penstock.runtime.clock import HostClock
from penstock.runtime.surroundings import Surroundings
from penstock.testing.bells import BellTower, Fate
from penstock.testing.lanes import InlineLane, Latency
from penstock.testing.loop import VirtualLoop
from penstock.testing.process import Process


class Host:
    """A machine of its own inside the running virtual loop. All its processes see one wall clock and ring one bell."""

    def __init__(self, *, seed: int = 0, fate: Fate | None = None) -> None:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop):
            raise TypeError(
                "This needs the virtual loop. Run the test with `@penstock.testing.virtual`, or with the pytest plugin "
                "`penstock.testing.plugin`."
            )
        self.loop = loop
        self.seed = seed
        self.bells = BellTower(loop) if fate is None else BellTower(loop, fate)
        self.processes: list[Process] = []
        self.context = contextvars.copy_context()  # of whoever made it: outside all processes

    def chance(self, concern: str) -> Random:
        """A source of its own for each concern, so that a new draw in one leaves the others as they were."""
        return Random(f"{self.seed}/{concern}")

    def process(self, name: str) -> Process:
        made = Process(self.loop, name)
        self.processes.append(made)
        return made

    def surroundings(
        self,
        process: Process,
        faults: Faults,
        *,
        tick_seconds: float | None = None,
        latency: Latency | None = None,
    ) -> Surroundings:
        """What an engine in this process is given. Without ticks days of idleness cost nothing."""

        def inline(_name: str) -> InlineLane:
            return InlineLane(self.loop, process, latency)

        def bell(_store: Store, _worker: int) -> Bell:
            return self.bells.bell(process)

        return Surroundings(
            clock=HostClock(wall=self.loop.wall_ns, monotonic=self.loop.time),
            random=self.chance(f"ids of {process.name}"),
            faults=faults,
            lane=inline,
            bell=bell,
            tick_seconds=tick_seconds,
            in_place=True,
        )

    def dispose(self) -> None:
        """Lets go of every process. Those that still live are killed first."""
        for process in self.processes:
            process.kill()
            process.dispose()
        self.processes.clear()
