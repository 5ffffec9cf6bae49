// A kernel for the tests of the AXI side: joins four 32-bit words to one of 128 bits.
#include <ap_int.h>
#include <hls_stream.h>

void read_words(const ap_uint<32> *source, hls::stream<ap_uint<32> > &words, unsigned n) {
  const unsigned count = n << 2;
  for (unsigned i = 0; i < count; i++) {
#pragma HLS PIPELINE II=1
    words.write(source[i]);
  }
}

void join_words(hls::stream<ap_uint<32> > &words, hls::stream<ap_uint<128> > &wide, unsigned n, int bias) {
  ap_uint<128> row = 0;
  const unsigned count = n << 2;
  for (unsigned i = 0; i < count; i++) {
#pragma HLS PIPELINE II=1
    row = row >> 32;
    row.range(127, 96) = words.read() + bias;
    if ((i & 3u) == 3u) wide.write(row);
  }
}

void write_rows(hls::stream<ap_uint<128> > &wide, ap_uint<128> *target, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
#pragma HLS PIPELINE II=1
    target[i] = wide.read();
  }
}

extern "C" void widen(const ap_uint<32> *source, ap_uint<128> *target, unsigned n, int bias) {
#pragma HLS INTERFACE m_axi port=source bundle=gmem0
#pragma HLS INTERFACE m_axi port=target bundle=gmem1
#pragma HLS DATAFLOW
  hls::stream<ap_uint<32> > words("words");
  hls::stream<ap_uint<128> > wide("wide");
  read_words(source, words, n);
  join_words(words, wide, n, bias);
  write_rows(wide, target, n);
}
