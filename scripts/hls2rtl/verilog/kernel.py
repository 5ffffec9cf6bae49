"""The kernel as Vitis names it: s_axi_control, one AXI master per bundle, AXI streams, and the dataflow inside."""

from __future__ import annotations

from ..design import Design, Port
from .control import address_bits, axi_lite, error_bits, registers
from .text import declare, indent, port, port_name

_ID_BITS = 1


def kernel_module(design: Design) -> str:
    bits = address_bits(design)
    lite = axi_lite(bits)
    ports = [port("input", 1, "ap_clk"), port("input", 1, "ap_rst_n"), port("output", 1, "interrupt")]
    ports += [port(direction, width, f"s_axi_control_{name.upper()}") for name, direction, width in lite]
    for each in design.ports:
        if each.kind == "memory":
            ports += [
                port(direction, width, f"m_axi_{each.bundle}_{name}") for name, direction, width in _axi(each.width)
            ]
        elif each.kind == "stream":
            ports += _axis(each)
    memories = [each for each in design.ports if each.kind == "memory"]
    writers = [each for each in memories if each.direction == "write"]
    body = [
        "logic reset;  // registered: it reaches every state machine",
        "always_ff @(posedge ap_clk) reset <= ~ap_rst_n;",
        "logic start, done, dataflow_done, processed;",
        f"logic [{max(1, len(memories))}-1:0] error;",
    ]
    if not memories:
        body.append("assign error = '0;")
    for register in registers(design):
        body.append(declare(register.width, f"{register.name}_value"))
    for each in memories:
        body += _master(each, error_bits(design)[each.bundle])
    body += [
        "",
        "// A launch is done when all processes are and everything written is answered.",
        "always_ff @(posedge ap_clk) processed <= ~reset & ~start & (processed | dataflow_done);",
        f"assign done = processed{''.join(f' & {each.name}_idle' for each in writers)};",
        "",
        f"{design.top}_control control (",
        "  .clock(ap_clk), .reset, .interrupt, .start, .done(done & ~start), .error,",
        *indent([f".{name}(s_axi_control_{name.upper()})," for name, _, _ in lite]),
        *indent([f".{register.name}_value," for register in registers(design)]),
    ]
    body[-1] = body[-1].rstrip(",")
    pins = [_dataflow_pins(each) for each in design.ports]
    body += [
        ");",
        "",
        f"{design.top}_dataflow dataflow (",
        "  .clock(ap_clk), .reset, .start, .done(dataflow_done),",
        *indent([f"{pin}," for pin in pins[:-1]] + pins[-1:]),
        ");",
    ]
    return "\n".join([f"module {design.top} (", ",\n".join(indent(ports)), ");", *indent(body), "endmodule", ""])


def _axi(width: int) -> list[tuple[str, str, int]]:
    """Signals of an AXI4 master: name, direction, width. Both directions are there, as on a Vitis kernel."""
    address = [("ADDR", 64), ("ID", _ID_BITS), ("LEN", 8), ("SIZE", 3), ("BURST", 2), ("LOCK", 1), ("CACHE", 4)]
    address += [("PROT", 3), ("QOS", 4), ("REGION", 4)]
    signals: list[tuple[str, str, int]] = []
    for channel in ("AW", "AR"):
        signals += [(f"{channel}VALID", "output", 1), (f"{channel}READY", "input", 1)]
        signals += [(f"{channel}{name}", "output", bits) for name, bits in address]
    signals += [("WVALID", "output", 1), ("WREADY", "input", 1), ("WDATA", "output", width)]
    signals += [("WSTRB", "output", width // 8), ("WLAST", "output", 1)]
    signals += [("RVALID", "input", 1), ("RREADY", "output", 1), ("RDATA", "input", width), ("RLAST", "input", 1)]
    signals += [("RID", "input", _ID_BITS), ("RRESP", "input", 2)]
    signals += [("BVALID", "input", 1), ("BREADY", "output", 1), ("BRESP", "input", 2), ("BID", "input", _ID_BITS)]
    return signals


def _axis(each: Port) -> list[str]:
    inward, outward = ("input", "output") if each.direction == "read" else ("output", "input")
    data = port(inward, each.width, f"{each.name}_TDATA")
    return [data, port(inward, 1, f"{each.name}_TVALID"), port(outward, 1, f"{each.name}_TREADY")]


def _master(each: Port, error_bit: int) -> list[str]:
    name, bus = each.name, f"m_axi_{each.bundle}"
    used, unused = ("AR", "AW") if each.direction == "read" else ("AW", "AR")
    size = (each.width // 8).bit_length() - 1
    lines = [
        "",
        f"// {name}: {each.direction}s {bus}",
        declare(each.width, f"{name}_data"),
        declare(32, f"{name}_length"),
        f"logic {name}_request;",
        f"assign {bus}_{used}SIZE = 3'd{size};",
        f"assign {bus}_{used}BURST = 2'b01;",
        f"assign {bus}_{used}CACHE = 4'b0011;",
    ]
    lines += [f"assign {bus}_{used}{signal} = '0;" for signal in ("ID", "LOCK", "PROT", "QOS", "REGION")]
    idle = ["VALID", "ADDR", "ID", "LEN", "SIZE", "BURST", "LOCK", "CACHE", "PROT", "QOS", "REGION"]
    lines += [f"assign {bus}_{unused}{signal} = '0;" for signal in idle]
    request = f".clock(ap_clk), .reset, .request({name}_request), .base({name}_value), .length({name}_length),"
    address = ", ".join(f".{used.lower()}{s}({bus}_{used}{s.upper()})" for s in ("addr", "len", "valid", "ready"))
    if each.direction == "read":
        lines += [f"assign {bus}_{signal} = '0;" for signal in ("WVALID", "WDATA", "WSTRB", "WLAST", "BREADY")]
        data = ", ".join(f".r{s}({bus}_R{s.upper()})" for s in ("data", "resp", "valid", "ready"))
        return [
            *lines,
            f"logic {name}_valid, {name}_ready;",
            f"hls2rtl_axi_read #(.WIDTH({each.width})) read_{name} (",
            f"  {request}",
            f"  .error(error[{error_bit}]),",
            f"  {address},",
            f"  {data},",
            f"  .out_data({name}_data), .out_valid({name}_valid), .out_ready({name}_ready)",
            ");",
        ]
    lines += [f"assign {bus}_RREADY = 1'b0;", f"assign {bus}_WSTRB = '1;"]
    data = ", ".join(f".w{s}({bus}_W{s.upper()})" for s in ("data", "last", "valid", "ready"))
    answer = ", ".join(f".b{s}({bus}_B{s.upper()})" for s in ("resp", "valid", "ready"))
    stream = ", ".join(f".{s}({name}_{s})" for s in ("reserve", "cancel", "push", "data", "space"))
    return [
        *lines,
        f"logic {name}_reserve, {name}_cancel, {name}_push, {name}_space, {name}_idle;",
        f"hls2rtl_axi_write #(.WIDTH({each.width})) write_{name} (",
        f"  {request}",
        f"  .idle({name}_idle), .error(error[{error_bit}]),",
        f"  {address},",
        f"  {data},",
        f"  {answer},",
        f"  {stream}",
        ");",
    ]


def _dataflow_pins(each: Port) -> str:
    name = each.name
    if each.kind == "scalar":
        return f".{port_name(name)}({name}_value)"
    if each.kind == "stream":
        return f".{name}_data({name}_TDATA), .{name}_valid({name}_TVALID), .{name}_ready({name}_TREADY)"
    signals = ("data", "valid", "ready") if each.direction == "read" else ("data", "reserve", "cancel", "push", "space")
    return ", ".join(f".{name}_{signal}" for signal in ("request", "length", *signals))
