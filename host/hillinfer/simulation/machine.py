"""A box at work on a model: what each kind of work asks of which resource.

Every method returns an event, or something to ``yield from``, that ends when the work is done. Bytes are those of one
layer and the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import simpy

from hillinfer.errors import MemoryBudgetError, SettingError
from hillinfer.simulation.flows import Flows
from hillinfer.simulation.gpu_room import gpu_room
from hillinfer.simulation.hardware import Hardware, SmartSsd
from hillinfer.simulation.shape import Shape

Steps = Generator[simpy.Event, None, None]
"""What a process of simpy is made of."""

SCORE_TUPLE_BYTES = 4
"""Of a Score Block, per token: position and score (algorithms.md §1)."""


@dataclass
class Machine:
    """Resources: "gpu", "cpu", "dram", "pcie", "ssd", "smartssd" (its drive), "p2p", "fpga", "link".

    On a box without a GPU the processor computes: then rows need not be gathered or copied, and ``software`` counts.
    """

    hardware: Hardware
    shape: Shape
    sequences: int
    env: simpy.Environment = field(default_factory=simpy.Environment)
    behind: list[Callable[[], Steps]] = field(default_factory=list)
    """Work put off behind the steps; done when somebody would wait, or when its turn comes."""
    arriving: dict[int, simpy.Event] = field(default_factory=dict)
    """What a layer ordered in its last step, to be there before it attends again."""
    kv_on_device: float = 0.0
    """Bytes of KV where it is computed, which weights give way to."""

    def __post_init__(self) -> None:
        self.flows = Flows(self.env)

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU computes."""
        return self.hardware.gpu is not None

    # ---- time

    def start(self, steps: Steps) -> simpy.Event:
        """Something that goes on by itself; the event of its end."""
        return self.env.process(steps)

    def together(self, *works: simpy.Event) -> simpy.Event:
        """When all of them are over."""
        return self.env.all_of(works)

    def catch_up(self) -> Steps:
        """All that was put off."""
        works, self.behind[:] = list(self.behind), []
        for work in works:
            yield from work()

    # ---- computing

    def weights(self, nbytes: float, name: str) -> simpy.Event:
        """Products of the batch with so many bytes of weights.

        Weights that the GPU has no room for come over the link while others are used.
        """
        box = self.hardware
        if box.gpu is None:
            seconds = nbytes / box.cpu.linear
            return self._on_cpu(name, seconds, nbytes, threads=box.cpu.cores)
        operations = 2 * nbytes / self.shape.weight_bytes * self.sequences
        demands = {"gpu": max(nbytes / box.gpu.bandwidth, operations / box.gpu.flops)}
        away = nbytes * (1 - self.resident_share)
        if away > 0:
            demands |= self._link(away)
        return self.flows.start(name, demands, least=box.gpu.layer_overhead / 2)

    @property
    def resident_share(self) -> float:
        """The share of the weights that lies where it is computed with."""
        gpu = self.hardware.gpu
        return 1.0 if gpu is None else min(1.0, (gpu_room(gpu, self.shape) - self.kv_on_device) / self._all_weights)

    @property
    def _all_weights(self) -> float:
        """With those of the input embedding."""
        return self.shape.weights + self.shape.head_weights

    def attend(self, rows: float, name: str = "attend", rate: float | None = None) -> simpy.Event:
        """Attention to rows where it is computed; ``rate``: the processor's, if not that of HillInfer's steps."""
        nbytes = rows * self.shape.row_bytes
        if self.hardware.gpu is None:
            return self._on_cpu(name, nbytes / (rate or self.hardware.cpu.attend), nbytes)
        return self.flows.start(name, {"gpu": nbytes / self.hardware.gpu.bandwidth})

    def attend_stock(self, tokens: float) -> Steps:
        """A stock cache of all tokens: append one, attend to all."""
        nbytes, software = tokens * self.shape.row_bytes, self.hardware.software
        if self.hardware.gpu is not None:
            yield self.attend(tokens)
        elif software is None:
            yield self._on_cpu("attend", nbytes / self.hardware.cpu.attend, nbytes)
        else:
            yield self.overhead("stock cache", software.stock_layer * self.sequences)
            yield self._on_cpu("append", nbytes / software.stock_append, 2 * nbytes)
            yield self._on_cpu("attend", nbytes / software.stock_attend, nbytes)

    def attend_kept(self, rows: float, policy: str = "") -> Steps:
        """Attention to what a policy keeps of the tokens, and who is dropped next; "": one that weighs nothing."""
        software = self.hardware.software
        if self.on_gpu or software is None:
            yield self.attend(rows)
            return
        layer, rate = software.kept_layer, software.kept_attend
        if policy:
            way = software.way(policy)
            layer, rate = way.layer, way.attend
        yield self.overhead("kept rows", layer * self.sequences)
        yield self.attend(rows, rate=rate)

    def overhead(self, name: str, seconds: float) -> simpy.Event:
        """Programs at work on the step's thread."""
        return self._on_cpu(name, seconds, 0.0)

    def _on_cpu(self, name: str, seconds: float, nbytes: float, threads: float = 1) -> simpy.Event:
        """Work of ``threads`` threads for so long, if nobody disturbs them, on so many bytes of memory."""
        box = self.hardware
        demands = {"cpu": seconds * threads / box.cpu.cores, "dram": nbytes / box.dram.bandwidth}
        return self.flows.start(name, demands, least=seconds)

    # ---- scoring

    def score(self, nbytes: float) -> simpy.Event:
        """The host scores so many bytes of keys."""
        return self._on_cpu("score", nbytes / self.hardware.cpu.score, nbytes)

    def select(self, tokens: float) -> simpy.Event:
        """The host goes through so many scores."""
        return self._on_cpu("select", tokens / self.hardware.cpu.select, 2 * tokens)

    def device_score(self, tokens: float, nbytes: float, *, streamed: bool) -> Steps:
        """The storage device scores, blocks of scores streaming back meanwhile.

        streamed   keys come from its drive for every query, as they do where its memory has no copy
        """
        card = self._smartssd
        yield self.env.timeout(card.launch)
        demands = {"fpga": nbytes / card.cards / min(card.scan, card.memory_bandwidth)}
        if streamed:
            demands["p2p"] = nbytes / card.cards / card.p2p
            demands["smartssd"] = nbytes / card.cards / card.drive.read
        demands["link"] = tokens * SCORE_TUPLE_BYTES / card.cards / card.link
        yield self.flows.start("score", demands, on="fpga")

    @property
    def _smartssd(self) -> SmartSsd:
        if self.hardware.smartssd is None:
            raise SettingError(f"the box {self.hardware.name} has no SmartSSD: choose a method or a box without")
        return self.hardware.smartssd

    # ---- moving

    def copy(self, rows: float, *, gather: bool = True) -> Steps:
        """Rows from host memory to where attention is computed; nothing where that is the processor.

        gather   they lie apart, and the processor brings them together
        """
        if self.hardware.gpu is None or rows <= 0:
            return
        nbytes = rows * self.shape.row_bytes
        if gather:
            yield self._on_cpu("gather", nbytes / self.hardware.cpu.gather, 2 * nbytes)
        assert self.hardware.pcie is not None
        yield self.env.timeout(self.hardware.pcie.latency)
        yield self.flows.start("copy", self._link(nbytes))

    def _link(self, nbytes: float) -> dict[str, float]:
        pcie = self.hardware.pcie
        assert pcie is not None
        return {"pcie": nbytes / pcie.bandwidth, "dram": nbytes / self.hardware.dram.bandwidth}

    def read(self, rows: float, requests: float, *, name: str = "read", plain: bool = False) -> Steps:
        """Rows from the drive of the cold pool into host memory, in so many requests.

        plain   from the ordinary drive, which methods without near-data processing use
        """
        if rows <= 0:
            return
        on, drive, count = self.hardware.cold_pool(plain=plain)
        nbytes = rows * self.shape.row_bytes
        yield self.env.timeout(drive.latency)
        seconds = max(requests / drive.iops, requests * drive.request + nbytes / drive.read) / count
        yield self.flows.start(name, {on: seconds, "dram": nbytes / self.hardware.dram.bandwidth})

    def write(self, rows: float, *, name: str = "write", plain: bool = False) -> simpy.Event:
        """Rows to that drive, in large requests."""
        on, drive, count = self.hardware.cold_pool(plain=plain)
        nbytes = rows * self.shape.row_bytes
        demands = {on: nbytes / drive.write / count, "dram": nbytes / self.hardware.dram.bandwidth}
        return self.flows.start(name, demands)

    # ---- room

    def check(self, *, on_device: float = 0, in_dram: float = 0, on_drive: float = 0, plain: bool = False) -> None:
        """MemoryBudgetError unless bytes of KV have room; weights that a GPU cannot hold take room of the host's.

        plain   the drive is the ordinary one, as in ``read``
        """
        box, weights = self.hardware, self._all_weights
        if box.gpu is None:
            in_dram += weights + on_device
        else:
            room = gpu_room(box.gpu, self.shape)
            if on_device > room:
                raise MemoryBudgetError(_no_room(box.name, "GPU", on_device, room))
            in_dram += max(0.0, weights + on_device - room)
            self.kv_on_device = on_device
        _, drive, count = box.cold_pool(plain=plain)
        for place, needed, there in (
            ("memory", in_dram, float(box.dram.capacity)),
            ("drive", on_drive, drive.capacity * count),
        ):
            if needed > there:
                raise MemoryBudgetError(_no_room(box.name, place, needed, there))


def _no_room(box: str, place: str, needed: float, there: float) -> str:
    return (
        f"{needed / 1e9:.1f} GB do not fit into the {there / 1e9:.1f} GB of {place} of the box {box}: "
        "take a shorter context, a smaller batch, or another method"
    )
