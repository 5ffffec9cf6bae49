// How the top starts its processes.
//
// For Vitis, the RTL flow and AMD's headers PROCESS(f, a, b) is the plain call f(a, b), which is what a DATAFLOW region
// has to consist of. With the headers in compat/ it becomes a fiber, so that processes run side by side over streams of
// finite depth.
#pragma once

#ifdef HLS_COMPAT
#define DATAFLOW_REGION hls::Region region
#define PROCESS(function, ...) region.add(#function, [&] { function(__VA_ARGS__); })
#else
#define DATAFLOW_REGION
#define PROCESS(function, ...) function(__VA_ARGS__)
#endif
