"""The processes and the streams between them as one module, and the kernel's own streams at its edge."""

from __future__ import annotations

from ..design import Design, Instance, Port, fifo_depth
from .expressions import constant
from .text import declare, indent, port, port_name


def dataflow_module(design: Design) -> str:
    """Module NAME_dataflow: start, done, scalars, and one port group per pointer or stream."""
    ports = [port("input", 1, name) for name in ("clock", "reset", "start")] + [port("output", 1, "done")]
    for each in design.ports:
        ports += _ports(each)
    body: list[str] = []
    for channel in design.channels:
        body += _fifo(channel.name, channel.width, channel.depth, "reset | start")
    for each in design.ports:
        if each.kind == "stream" and each.direction == "write":
            body += _edge_fifo(design, each)
    for instance in design.instances:
        body += _instance(design, instance)
    finished = [f"{instance.name}_finished" for instance in design.instances]
    return "\n".join(
        [
            f"// The processes of {design.top} and the streams between them.",
            f"module {design.top}_dataflow (",
            *indent([f"{line}," for line in ports[:-1]] + [ports[-1]]),
            ");",
            *indent(body),
            "",
            "  logic running;",
            f"  assign done = running & {' & '.join(finished)};",
            "  always_ff @(posedge clock) running <= ~reset & (start | (running & ~done));",
            "endmodule",
            "",
        ]
    )


def module_name(top: str, process: str) -> str:
    """The module of a process, apart from those that every kernel has."""
    return f"{top}_{process}" if process not in ("control", "dataflow") else f"{top}_{process}_process"


def _ports(each: Port) -> list[str]:
    name = each.name
    if each.kind == "scalar":
        return [port("input", each.width, port_name(name))]
    ports = []
    if each.kind == "memory":
        ports += [port("output", 1, f"{name}_request"), port("output", 32, f"{name}_length")]
    if each.kind == "memory" and each.direction == "write":
        ports += [port("output", each.width, f"{name}_data")]
        ports += [port("output", 1, f"{name}_{signal}") for signal in ("reserve", "cancel", "push")]
        return [*ports, port("input", 1, f"{name}_space")]
    inward, outward = ("input", "output") if each.direction == "read" else ("output", "input")
    ports += [port(inward, each.width, f"{name}_data"), port(inward, 1, f"{name}_valid")]
    return [*ports, port(outward, 1, f"{name}_ready")]


def _fifo(name: str, width: int, depth: int, reset: str) -> list[str]:
    """reset: streams inside the kernel are empty when a launch starts, as in C++; those that leave it are kept."""
    signals = ", ".join(f"{name}_{signal}" for signal in ("reserve", "cancel", "push", "space", "valid", "ready"))
    return [
        "",
        f"// stream {name}",
        declare(width, f"{name}_in"),
        declare(width, f"{name}_data"),
        f"logic {signals};",
        f"hls2rtl_fifo #(.WIDTH({width}), .DEPTH({depth})) fifo_{name} (",
        f"  .clock, .reset({reset}), .reserve({name}_reserve), .cancel({name}_cancel), .push({name}_push),",
        f"  .data({name}_in), .space({name}_space),",
        f"  .out_data({name}_data), .out_valid({name}_valid), .out_ready({name}_ready)",
        ");",
    ]


def _edge_fifo(design: Design, each: Port) -> list[str]:
    """A stream that leaves the kernel has its FIFO here; its wires are named apart from the port."""
    name = each.name
    instance, parameter = _writer(design, name)
    width = instance.process.writes[parameter]
    lines = _fifo(f"{name}_out", width, fifo_depth(2, instance.process, parameter), "reset")
    padding = f"{{{constant(each.width - width, 0)}, {name}_out_data}}" if width < each.width else f"{name}_out_data"
    return [
        *lines,
        f"assign {name}_data = {padding};",
        f"assign {name}_valid = {name}_out_valid;",
        f"assign {name}_out_ready = {name}_ready;",
    ]


def _writer(design: Design, name: str) -> tuple[Instance, str]:
    for instance in design.instances:
        for parameter, connected in instance.connections.items():
            if connected == name and parameter in instance.process.writes:
                return instance, parameter
    raise AssertionError(name)


def _instance(design: Design, instance: Instance) -> list[str]:
    process, name = instance.process, instance.name
    kinds = {each.name: each for each in design.ports}
    widths = {channel.name: channel.width for channel in design.channels}
    pins = [f".clock, .reset, .start, .done({name}_done)"]
    for parameter, connected in instance.connections.items():
        if parameter in process.scalars:
            value = (
                constant(process.scalars[parameter], connected) if isinstance(connected, int) else port_name(connected)
            )
            pins.append(f".{port_name(parameter)}({value})")
            continue
        wire = str(connected)
        edge = kinds.get(wire)
        if parameter in process.reads:
            data = f"{wire}_data"
            missing = process.reads[parameter] - widths.get(wire, process.reads[parameter])
            if missing:
                data = f"{{{constant(missing, 0)}, {data}}}"
            pins.append(
                f".{parameter}_data({data}), .{parameter}_valid({wire}_valid), .{parameter}_ready({wire}_ready)"
            )
        elif parameter in process.writes:
            if edge is not None and edge.kind == "stream":
                wire = f"{wire}_out"
            data = f"{wire}_data" if edge is not None and edge.kind == "memory" else f"{wire}_in"
            signals = ", ".join(f".{parameter}_{s}({wire}_{s})" for s in ("reserve", "cancel", "push", "space"))
            pins.append(f".{parameter}_data({data}), {signals}")
        if parameter in process.bursts:
            pins.append(f".{parameter}_request({wire}_request), .{parameter}_length({wire}_length)")
    return [
        "",
        f"logic {name}_done, {name}_finished;",
        f"{module_name(design.top, process.name)} u_{name} (",
        *indent([f"{pin}," for pin in pins[:-1]] + [pins[-1]]),
        ");",
        f"always_ff @(posedge clock) {name}_finished <= ~reset & ~start & ({name}_finished | {name}_done);",
    ]
