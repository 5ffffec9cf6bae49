// Reads `length` beats from `base` in bursts that cross no 4 KiB boundary, and hands them on in order.
//
// A burst is asked for only when all of its beats have a place in the FIFO, so RREADY is always 1.
// The base's bits below a beat are ignored. error: a beat came with SLVERR or DECERR (it is handed on all the same).
module hls2rtl_axi_read #(
  parameter int WIDTH = 512,
  parameter int DEPTH = 512,  // beats in flight or waiting
  parameter int BURST = 64    // beats, at most 256
) (
  input  logic             clock,
  input  logic             reset,
  input  logic             request,
  input  logic [63:0]      base,
  input  logic [31:0]      length,
  output logic             error,
  output logic [63:0]      araddr,
  output logic [7:0]       arlen,
  output logic             arvalid,
  input  logic             arready,
  input  logic [WIDTH-1:0] rdata,
  input  logic [1:0]       rresp,
  input  logic             rvalid,
  output logic             rready,
  output logic [WIDTH-1:0] out_data,
  output logic             out_valid,
  input  logic             out_ready
);
  localparam int BYTE_BITS = $clog2(WIDTH / 8);
  localparam int BITS = $clog2(DEPTH);

  typedef enum logic [1:0] {IDLE, MEASURE, CLIP, ASK} state_t;
  state_t state;
  logic [63:0] address;
  logic [31:0] left;
  logic [12:0] room, burst;     // beats up to the next boundary; beats of the next burst
  logic [BITS:0] taken;         // places in the FIFO that are filled or promised
  logic unused_space;

  wire [12:0] to_boundary = (13'd4096 - {1'b0, address[11:0]}) >> BYTE_BITS;
  wire ask = state == ASK & (~arvalid | arready) & (32'(taken) + 32'(burst) <= 32'(DEPTH));
  wire pop = out_valid & out_ready;

  assign rready = 1'b1;
  assign error  = rvalid & rresp[1];

  always_ff @(posedge clock)
    if (reset) begin
      state   <= IDLE;
      arvalid <= 1'b0;
      taken   <= '0;
      left    <= '0;
    end else begin
      if (arready) arvalid <= 1'b0;
      taken <= taken + (ask ? (BITS+1)'(burst) : '0) - (BITS+1)'(pop);
      unique case (state)
        IDLE: if (request) begin
          address <= {base[63:BYTE_BITS], {BYTE_BITS{1'b0}}};
          left    <= length;
          state   <= length == 0 ? IDLE : MEASURE;
        end
        MEASURE: begin
          room  <= to_boundary > 13'(BURST) ? 13'(BURST) : to_boundary;
          state <= CLIP;
        end
        CLIP: begin
          burst <= left < 32'(room) ? left[12:0] : room;
          state <= ASK;
        end
        ASK: if (ask) begin
          arvalid <= 1'b1;
          araddr  <= address;
          arlen   <= 8'(burst - 1'b1);
          address <= address + (64'(burst) << BYTE_BITS);
          left    <= left - 32'(burst);
          state   <= left == 32'(burst) ? IDLE : MEASURE;
        end
      endcase
    end

  hls2rtl_fifo #(.WIDTH(WIDTH), .DEPTH(DEPTH)) fifo (
    .clock, .reset,
    .reserve(rvalid), .cancel(1'b0), .push(rvalid), .data(rdata), .space(unused_space),
    .out_data, .out_valid, .out_ready
  );
endmodule
