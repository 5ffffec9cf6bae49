"""The control registers (s_axi_control) as Vitis lays them out: ap_ctrl_chain, interrupts, arguments, AXI errors."""

from __future__ import annotations

from dataclasses import dataclass

from ..design import Design
from .text import declare, indent, port

_FIRST_ARGUMENT = 0x10


@dataclass(frozen=True)
class Register:
    """An argument's register: byte offset and width in bits (64 takes a second word at offset + 4)."""

    name: str
    offset: int
    width: int


def registers(design: Design) -> list[Register]:
    """The arguments' registers, spaced as Vitis spaces them: 12 bytes for a pointer, 8 for a scalar up to 32 bits."""
    found, offset = [], _FIRST_ARGUMENT
    for each in design.ports:
        if each.kind == "stream":
            continue
        width = 64 if each.kind == "memory" else each.width
        found.append(Register(each.name, offset, width))
        offset += 12 if width > 32 else 8
    return found


def error_register(design: Design) -> Register:
    last = registers(design)[-1:]
    offset = last[0].offset + (12 if last[0].width > 32 else 8) if last else _FIRST_ARGUMENT
    return Register("axi_error", offset, 32)


def error_bits(design: Design) -> dict[str, int]:
    """bundle -> its bit in axi_error."""
    bundles = [each.bundle for each in design.ports if each.kind == "memory"]
    return {bundle: bit for bit, bundle in enumerate(bundles)}


def address_bits(design: Design) -> int:
    return max(6, error_register(design).offset.bit_length())


def control_module(design: Design) -> str:
    bits = address_bits(design)
    errors = max(1, len(error_bits(design)))
    arguments = registers(design)
    ports = [port("input", 1, "clock"), port("input", 1, "reset")]
    for name, direction, width in axi_lite(bits):
        ports.append(port(direction, width, name))
    ports += [port("output", 1, "interrupt"), port("output", 1, "start"), port("input", 1, "done")]
    ports += [port("input", errors, "error")]
    ports += [port("output", each.width, f"{each.name}_value") for each in arguments]
    declarations = [declare(each.width, f"{each.name}_written") for each in arguments]
    writes, reads, latches = [], [], []
    for each in arguments:
        for part, offset in enumerate(range(each.offset, each.offset + (8 if each.width > 32 else 4), 4)):
            low, high = 32 * part, min(each.width, 32 * part + 32) - 1
            field = f"{each.name}_written[{high}:{low}]" if each.width > 1 else f"{each.name}_written"
            writes.append(f"{bits}'h{offset:x}: {field} <= {_merged(field, high - low + 1)};")
            reads.append(f"{bits}'h{offset:x}: rdata <= 32'({field});")
        latches.append(f"{each.name}_value <= {each.name}_written;")
    return _TEMPLATE.format(
        top=design.top,
        ports=",\n".join(indent(ports)),
        declarations="\n".join(indent(declarations)),
        bits=bits,
        errors=errors,
        error_offset=f"{bits}'h{error_register(design).offset:x}",
        writes="\n".join(indent(writes, 8)),
        reads="\n".join(indent(reads, 8)),
        latches="\n".join(indent(latches, 6)),
    )


def _merged(field: str, width: int) -> str:
    return f"{width}'((32'({field}) & ~mask) | (wdata & mask))"


def axi_lite(bits: int) -> list[tuple[str, str, int]]:
    """Signals of the control port as its slave sees them: name, direction, width."""
    return [
        ("awaddr", "input", bits),
        ("awvalid", "input", 1),
        ("awready", "output", 1),
        ("wdata", "input", 32),
        ("wstrb", "input", 4),
        ("wvalid", "input", 1),
        ("wready", "output", 1),
        ("bresp", "output", 2),
        ("bvalid", "output", 1),
        ("bready", "input", 1),
        ("araddr", "input", bits),
        ("arvalid", "input", 1),
        ("arready", "output", 1),
        ("rdata", "output", 32),
        ("rresp", "output", 2),
        ("rvalid", "output", 1),
        ("rready", "input", 1),
    ]


_TEMPLATE = """\
// Control registers of {top}, as Vitis lays them out.
//   0x00 [0] ap_start     write 1 to queue a launch; reads 1 until the arguments are taken
//        [1] ap_done      a launch is finished; cleared by ap_continue
//        [2] ap_idle      nothing runs and nothing is queued
//        [3] ap_ready     the arguments were taken; cleared by reading
//        [4] ap_continue  write 1 to acknowledge ap_done
//        [7] auto_restart ap_start stays set
//        [9] interrupt
//   0x04 [0] interrupts enabled   0x08 which: [0] done, [1] ready   0x0c pending; write 1 to toggle
//   axi_error: a bit per bundle, set by SLVERR or DECERR; cleared by writing 1, and by a launch when ap_done is 0
// The arguments are copied when a launch starts, so those of the next one can be written while it runs. A launch that
// is queued starts when the one before it ends; its own end is told once ap_continue has acknowledged that one's.
module {top}_control (
{ports}
);
{declarations}
  logic ap_start, ap_done, ap_ready, auto_restart, running, untold;
  logic interrupts_on, done_enabled, ready_enabled, done_pending, ready_pending;
  logic [{errors}-1:0] axi_error;

  wire write = awvalid & wvalid & ~bvalid;
  wire read  = arvalid & ~rvalid;
  wire launch = ap_start & ~running & ~untold;
  wire finish = running & done;
  wire tell = (finish | untold) & ~ap_done;  // ap_done is set in the next clock
  wire [31:0] mask = {{{{8{{wstrb[3]}}}}, {{8{{wstrb[2]}}}}, {{8{{wstrb[1]}}}}, {{8{{wstrb[0]}}}}}};
  wire write_control = write & awaddr == {bits}'h0 & wstrb[0];
  wire [{errors}-1:0] cleared = write & awaddr == {error_offset} ? {errors}'(wdata & mask) : '0;

  assign awready = write;
  assign wready  = write;
  assign arready = read;
  assign bresp   = 2'b00;
  assign rresp   = 2'b00;
  assign interrupt = interrupts_on & (done_pending | ready_pending);

  always_ff @(posedge clock)
    if (reset) begin
      ap_start <= 1'b0;
      ap_done <= 1'b0;
      ap_ready <= 1'b0;
      auto_restart <= 1'b0;
      running <= 1'b0;
      untold <= 1'b0;
      start <= 1'b0;
      axi_error <= '0;
    end else begin
      start <= launch;
      running <= launch | (running & ~finish);
      untold <= (finish | untold) & ap_done;
      ap_start <= (ap_start & (~launch | auto_restart)) | (write_control & wdata[0]);
      ap_ready <= launch | (ap_ready & ~(read & araddr == {bits}'h0));
      ap_done <= tell | (ap_done & ~(write_control & wdata[4]));
      if (write_control) auto_restart <= wdata[7];
      axi_error <= (launch & ~ap_done ? '0 : axi_error & ~cleared) | error;
    end

  always_ff @(posedge clock)
    if (launch) begin
{latches}
    end

  always_ff @(posedge clock)
    if (reset) begin
      interrupts_on <= 1'b0;
      done_enabled <= 1'b0;
      ready_enabled <= 1'b0;
      done_pending <= 1'b0;
      ready_pending <= 1'b0;
      bvalid <= 1'b0;
      rvalid <= 1'b0;
    end else begin
      bvalid <= write | (bvalid & ~bready);
      rvalid <= read | (rvalid & ~rready);
      done_pending <= (tell & done_enabled) | done_pending;
      ready_pending <= (launch & ready_enabled) | ready_pending;
      if (write)
        case (awaddr)
        {bits}'h4: if (wstrb[0]) interrupts_on <= wdata[0];
        {bits}'h8: if (wstrb[0]) {{ready_enabled, done_enabled}} <= wdata[1:0];
        {bits}'hc: if (wstrb[0]) begin
          done_pending <= (tell & done_enabled) | (done_pending ^ wdata[0]);
          ready_pending <= (launch & ready_enabled) | (ready_pending ^ wdata[1]);
        end
{writes}
        default: ;
        endcase
      if (read)
        case (araddr)
        {bits}'h0: rdata <= {{22'b0, interrupt, 1'b0, auto_restart, 3'b0, ap_ready, ~ap_start & ~running & ~untold,
                             ap_done, ap_start}};
        {bits}'h4: rdata <= 32'(interrupts_on);
        {bits}'h8: rdata <= 32'({{ready_enabled, done_enabled}});
        {bits}'hc: rdata <= 32'({{ready_pending, done_pending}});
        {error_offset}: rdata <= 32'(axi_error);
{reads}
        default: rdata <= '0;
        endcase
    end
endmodule
"""
