// A FIFO whose writer reserves a place before it has the data.
//
// reserve  takes a place; allowed while space is 1. Later each reservation ends in push (data is written) or cancel.
// space    registered, so that it adds nothing to the writer's path: a place is free in this clock.
// out_*    valid/ready; the data comes out of a register, so the memory can be block RAM or LUT RAM.
module hls2rtl_fifo #(
  parameter int WIDTH = 8,
  parameter int DEPTH = 32  // a power of two
) (
  input  logic             clock,
  input  logic             reset,
  input  logic             reserve,
  input  logic             cancel,
  input  logic             push,
  input  logic [WIDTH-1:0] data,
  output logic             space,
  output logic [WIDTH-1:0] out_data,
  output logic             out_valid,
  input  logic             out_ready
);
  localparam int BITS = $clog2(DEPTH);

  logic [WIDTH-1:0] memory [DEPTH];
  logic [BITS:0] write_pointer, read_pointer;  // one bit more, to tell full from empty
  logic [BITS:0] taken, taken_next;            // places reserved or filled

  wire pop   = out_valid & out_ready;
  wire fetch = (write_pointer != read_pointer) & (~out_valid | out_ready);

  assign taken_next = taken + (BITS+1)'(reserve) - (BITS+1)'(cancel) - (BITS+1)'(pop);

  always_ff @(posedge clock) begin
    if (push) memory[write_pointer[BITS-1:0]] <= data;
    if (fetch) out_data <= memory[read_pointer[BITS-1:0]];
  end

  always_ff @(posedge clock)
    if (reset) begin
      write_pointer <= '0;
      read_pointer  <= '0;
      taken         <= '0;
      space         <= 1'b1;
      out_valid     <= 1'b0;
    end else begin
      if (push) write_pointer <= write_pointer + 1'b1;
      if (fetch) read_pointer <= read_pointer + 1'b1;
      taken     <= taken_next;
      space     <= taken_next < (BITS+1)'(DEPTH);
      out_valid <= fetch | (out_valid & ~out_ready);
    end
endmodule
