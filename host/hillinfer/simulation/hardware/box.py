"""A box: compute device, processor, memory, link, drives, and what software costs on it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from hillinfer.errors import SettingError, nearest
from hillinfer.simulation.hardware.number import Number, Positive

WHOLE = "everything"
"""The name of attending to all that is in the tiers, among ways."""


class Part(BaseModel):
    """A table of a hardware file."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Gpu(Part):
    """The compute device, where it is not the processor.

    memory          bytes
    bandwidth       bytes/s of that memory
    flops           FP16 operations/s, a multiplication and an addition being two
    layer_overhead  seconds of a layer that launches take and nothing hides
    reserved        bytes of its memory that programs take, whatever they compute: CUDA, kernels, other windows
    """

    memory: Positive
    bandwidth: Positive
    flops: Positive
    layer_overhead: Number
    reserved: Number = Number(0, "nothing else is in it")


class Cpu(Part):
    """The processor.

    cores           that this work may use; a step's own thread is one of them
    score           bytes of scoring keys, as they are scanned, per second
    attend          bytes of rows attended where they lie, per second
    gather          bytes of rows brought together, for a copy to the GPU, per second
    linear          bytes of weights multiplied by one row, per second
    select          tokens whose score the selection looks at, per second
    """

    cores: Positive
    score: Positive
    attend: Positive
    gather: Positive
    linear: Positive
    select: Positive


class Dram(Part):
    """capacity: bytes; bandwidth: bytes/s that all who use it share."""

    capacity: Positive
    bandwidth: Positive


class Pcie(Part):
    """The link between host memory and GPU: bandwidth in bytes/s one way, latency in seconds of one copy."""

    bandwidth: Positive
    latency: Number


class Drive(Part):
    """A drive.

    capacity     bytes
    read, write  bytes/s of large requests
    iops         small random reads per second, many in flight
    latency      seconds of one of them
    request      seconds that each read takes of the drive on top of its bytes: not nothing where requests are served
                 one after another, as by a drive that is a file of another machine
    """

    capacity: Positive
    read: Positive
    write: Positive
    iops: Positive
    latency: Number
    request: Number = Number(0, "reads are served beside each other, up to iops and read")


class SmartSsd(Part):
    """Drives with an FPGA each.

    cards             how many; each has what follows
    memory            bytes of the FPGA's DRAM
    memory_bandwidth  bytes/s of it, as the kernel reads it
    scan              bytes of keys the kernel takes in per second, if memory keeps up
    p2p               bytes/s from the drive straight into that memory
    link              bytes/s between host and FPGA
    launch            seconds from a query's submission to the first key
    drive             the drive itself
    """

    cards: Positive
    memory: Positive
    memory_bandwidth: Positive
    scan: Positive
    p2p: Positive
    link: Positive
    launch: Number
    drive: Drive


class Way(Part):
    """What a step of one layer takes by another way of attending than HillInfer's, on the step's own thread.

    layer    seconds with nothing cached
    token    seconds per cached token: an index is looked through
    row      seconds per row, whichever heads attend to it: it is found, and counted behind the step
    attend   bytes of rows attended per second, a row counted once for all heads together
    """

    layer: Number
    token: Number = Number(0, "nothing is looked through")
    row: Number = Number(0, "rows are where they are attended")
    attend: Positive


class Software(Part):
    """What the programs themselves cost, on the step's own thread: measured where they run.

    model_layer     seconds of a layer outside attention and products of weights (norms, rotation, Python)
    model_step      seconds of a step outside all layers, its products of weights not counted
    engine_layer    seconds of this engine's step of one layer and sequence, with nothing to score or attend
    settle_layer    seconds behind it where cold rows were read: the placement's decisions
    settle_pool     seconds behind it per cached token where cold rows were read: who is coldest in the pool
    settle_token    seconds behind it per cached token, always: the hit-rate table ages
    settle_row      seconds behind it per cold row read
    read_layer      seconds to ask for cold rows and to be told that they are there, the drive's time not counted
    read_row        seconds per cold row: its checksum, its place
    stock_layer     seconds of the stock cache's step of one layer, with nothing cached
    stock_append    bytes of KV that the stock cache copies to append a token, per second
    stock_attend    bytes of KV that the stock attention looks at, per second
    kept_layer      seconds of a layer, with nothing cached, of a policy that drops tokens
    kept_attend     bytes of kept KV that it goes through, per second: attention, and who is dropped next
    whole           of a layer that is attended whole, piece by piece, with everything in the tiers
    guess_layer     seconds to foretell what a layer will ask for (lookahead), with nothing cached
    guess_token     seconds per cached token of that
    ways            of policies by name
    """

    model_layer: Number
    model_step: Number
    engine_layer: Number
    settle_layer: Number
    settle_pool: Number
    settle_token: Number
    settle_row: Number
    read_layer: Number
    read_row: Number
    stock_layer: Number
    stock_append: Positive
    stock_attend: Positive
    kept_layer: Number
    kept_attend: Positive
    whole: Way | None = None
    guess_layer: Number = Number(0, "not measured")
    guess_token: Number = Number(0, "not measured")
    ways: dict[str, Way] = {}

    def way(self, policy: str) -> Way:
        """What a policy takes; SettingError where it was not measured."""
        found = self.whole if policy == WHOLE else self.ways.get(policy)
        if found is None:
            raise SettingError(
                f"what attending takes by {policy} was not measured on this box: run hillinfer simulate measure, "
                "and take its [software] table"
            )
        return found

    def __hash__(self) -> int:
        """A mapping has none; boxes are looked up by what was simulated on them."""
        return hash((*(value for name, value in self if name != "ways"), *sorted(self.ways)))


class Hardware(Part):
    """A box; every number with its source.

    gpu       None: the processor computes; pcie: its link
    smartssd  None: a thread of the processor scores in the device's place, and ``ssd`` holds the cold pool
    software  None: nothing of it is known, and nothing is counted
    """

    name: str
    about: str
    gpu: Gpu | None = None
    cpu: Cpu
    dram: Dram
    pcie: Pcie | None = None
    ssd: Drive
    smartssd: SmartSsd | None = None
    software: Software | None = None

    @model_validator(mode="after")
    def _linked(self) -> Hardware:
        if self.gpu is not None and self.pcie is None:
            raise ValueError("it has a gpu and no pcie: say how fast the link to the GPU is")
        return self

    def cold_pool(self, *, plain: bool = False) -> tuple[str, Drive, float]:
        """The drives of the cold pool: their name among resources, one of them, and how many.

        plain   of methods without near-data processing, which use the ordinary drive
        """
        if self.smartssd is None or plain:
            return "ssd", self.ssd, 1.0
        return "smartssd", self.smartssd.drive, float(self.smartssd.cards)

    def changed(self, **changes: Number) -> Hardware:
        """The box with other numbers: ``box.changed(ssd__read=Number(14e9, "a PCIe 5 drive"))``.

        A part's field is named part__field, smartssd__drive__read one of a part of a part. SettingError for none.
        """
        tables: dict[str, Any] = self.model_dump()
        for path, number in changes.items():
            *parents, field = path.split("__")
            table = tables
            for parent in parents:
                table = table.get(parent) or {}
            if field not in table:
                raise SettingError(f"the box {self.name} has no {path}{nearest(field, list(table))}")
            table[field] = number
        return Hardware.model_validate(tables)
