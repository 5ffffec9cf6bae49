// Writes `length` beats to `base` in bursts that cross no 4 KiB boundary.
//
// A burst starts when all of its beats are there; or with those that are there once none has come for FLUSH clocks, so that
// a reader of the memory need not wait for more to follow. The base's bits below a beat are ignored.
// idle: everything asked for is written and answered. error: an answer was SLVERR or DECERR.
module hls2rtl_axi_write #(
  parameter int WIDTH = 512,
  parameter int DEPTH = 64,   // beats waiting, a power of two
  parameter int BURST = 16,   // beats, at most 256 and DEPTH: more would make the first of them wait
  parameter int FLUSH = 16
) (
  input  logic               clock,
  input  logic               reset,
  input  logic               request,
  input  logic [63:0]        base,
  input  logic [31:0]        length,
  output logic               idle,
  output logic               error,
  output logic [63:0]        awaddr,
  output logic [7:0]         awlen,
  output logic               awvalid,
  input  logic               awready,
  output logic [WIDTH-1:0]   wdata,
  output logic               wlast,
  output logic               wvalid,
  input  logic               wready,
  input  logic [1:0]         bresp,
  input  logic               bvalid,
  output logic               bready,
  input  logic               reserve,
  input  logic               cancel,
  input  logic               push,
  input  logic [WIDTH-1:0]   data,
  output logic               space
);
  localparam int BYTE_BITS = $clog2(WIDTH / 8);
  localparam int BITS = $clog2(DEPTH);

  logic [63:0] address;
  logic [31:0] left;            // beats not yet part of a burst
  logic [12:0] full;            // beats that the next burst may have at most
  logic measured;               // full is up to date
  logic [BITS:0] waiting;       // beats in the FIFO that no burst has taken
  logic [8:0] open;             // beats of the present burst still to send
  logic [31:0] unanswered;
  logic [$clog2(FLUSH+1)-1:0] quiet;
  logic out_valid;

  wire [12:0] to_boundary = (13'd4096 - {1'b0, address[11:0]}) >> BYTE_BITS;
  wire [12:0] room  = to_boundary > 13'(BURST) ? 13'(BURST) : to_boundary;
  wire sent  = wvalid & wready;
  wire whole = 13'(waiting) >= full;
  wire flush = waiting != 0 & quiet == FLUSH[$bits(quiet)-1:0];
  wire free  = open == 0 | (open == 1 & sent);
  wire start = measured & left != 0 & ~awvalid & free & (whole | flush);
  wire [12:0] burst = whole ? full : 13'(waiting);

  assign wvalid = out_valid & open != 0;
  assign wlast  = open == 9'd1;
  assign bready = 1'b1;
  assign error  = bvalid & bresp[1];
  assign idle   = ~request & left == 0 & open == 0 & unanswered == 0;

  always_ff @(posedge clock)
    if (reset) begin
      left       <= '0;
      measured   <= 1'b0;
      waiting    <= '0;
      open       <= '0;
      unanswered <= '0;
      quiet      <= '0;
      awvalid    <= 1'b0;
    end else begin
      if (awready) awvalid <= 1'b0;
      if (request) begin
        address <= {base[63:BYTE_BITS], {BYTE_BITS{1'b0}}};
        left    <= length;
      end else if (start) begin
        awvalid <= 1'b1;
        awaddr  <= address;
        awlen   <= 8'(burst - 1'b1);
        address <= address + (64'(burst) << BYTE_BITS);
        left    <= left - 32'(burst);
      end
      full       <= left < 32'(room) ? left[12:0] : room;
      measured   <= ~request & ~start;
      open       <= start ? 9'(burst) : open - 9'(sent);
      waiting    <= waiting + (BITS+1)'(push) - (start ? (BITS+1)'(burst) : '0);
      unanswered <= unanswered + 32'(start) - 32'(bvalid);
      quiet      <= push ? '0 : quiet == FLUSH[$bits(quiet)-1:0] ? quiet : quiet + 1'b1;
    end

  hls2rtl_fifo #(.WIDTH(WIDTH), .DEPTH(DEPTH)) fifo (
    .clock, .reset, .reserve, .cancel, .push, .data, .space,
    .out_data(wdata), .out_valid, .out_ready(sent)
  );
endmodule
