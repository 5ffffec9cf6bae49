// hls::stream with the depth it has in hardware, and the scheduler that makes the depth matter.
//
// Vitis's C simulation calls the processes of a DATAFLOW region one after another over queues without end, so that a
// FIFO that is too shallow first shows in hardware. Here each process is a fiber: a read of an empty stream and a write
// to a full one give way to another process, and when none can go on, that is a deadlock, reported with the streams.
// One thread, no timing: the same launch always runs in the same order.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ap_int.h"
#include "fiber.h"
#include "stream_depths.h"  // made by the build from the STREAM pragmas, which stay the only place with depths

#define HLS_COMPAT 1

namespace hls {

// What went wrong in the last region of this thread; empty when nothing did.
inline std::string &fault() {
  static thread_local std::string text;
  return text;
}

// Streams made on this thread hold at least so many elements. 0: exactly their depth. More of them mean fewer
// switches between processes and the same results, as every process only reads and writes streams (a Kahn network).
inline unsigned &least_depth() {
  static thread_local unsigned elements = 0;
  return elements;
}

inline unsigned depth_of(const std::string &name) {
  for (const StreamDepth &entry : kStreamDepths)
    if (name == entry.name) return entry.depth;
  return 2;  // what Vitis gives a stream without a pragma
}

class Channel {
 public:
  explicit Channel(const char *name) : name_(name), depth_(depth_of(name)) {}
  const std::string &name() const { return name_; }
  unsigned depth() const { return depth_; }
  bool empty() const { return held_ == 0; }
  bool full() const { return held_ == capacity(); }

 protected:
  unsigned capacity() const { return capacity_; }
  std::string name_;
  unsigned depth_;
  unsigned capacity_ = depth_ > least_depth() ? depth_ : least_depth();
  unsigned held_ = 0;
};

// The processes of one DATAFLOW region. They run in its destructor: declare it behind the streams.
class Region {
 public:
  Region() : outer_(current()) { current() = this; }
  ~Region() {
    run();
    current() = outer_;
  }
  Region(const Region &) = delete;
  Region &operator=(const Region &) = delete;

  void add(const char *name, std::function<void()> body) {
    processes_.emplace_back(new Process(name, std::move(body)));
  }

  // The process that runs gives way until it can read from (write to) the channel.
  static void wait(const Channel &channel, bool to_write) {
    Region *region = current();
    if (region == nullptr || region->running_ == nullptr) {
      std::fprintf(stderr, "hls::stream '%s' is %s, and nobody else runs\n", channel.name().c_str(),
                   to_write ? "full" : "empty");
      std::abort();
    }
    Process *process = region->running_;
    process->waits_for = &channel;
    process->to_write = to_write;
    process->fiber.pause();
  }

 private:
  struct Process {
    Process(const char *name, std::function<void()> body) : name(name), fiber(std::move(body)) {}
    std::string name;
    Fiber fiber;
    const Channel *waits_for = nullptr;
    bool to_write = false;

    bool can_run() const {
      return !fiber.ended() && (waits_for == nullptr || (to_write ? !waits_for->full() : !waits_for->empty()));
    }
  };

  static Region *&current() {
    static thread_local Region *region = nullptr;
    return region;
  }

  void run() {
    fault().clear();
    for (bool progress = true; progress;) {
      progress = false;
      for (const std::unique_ptr<Process> &process : processes_) {
        if (!process->can_run()) continue;
        process->waits_for = nullptr;
        running_ = process.get();
        process->fiber.resume();
        progress = true;
      }
    }
    running_ = nullptr;
    for (const std::unique_ptr<Process> &process : processes_)
      if (!process->fiber.ended()) report(*process);
  }

  static void report(const Process &process) {
    const Channel &channel = *process.waits_for;
    fault() += fault().empty() ? "deadlock: " : "; ";
    fault() += process.name + (process.to_write ? " waits for room in " : " waits for data in ") + channel.name() +
               " (depth " + std::to_string(channel.depth()) + ")";
  }

  std::vector<std::unique_ptr<Process>> processes_;
  Process *running_ = nullptr;
  Region *outer_;
};

template <class T> class stream : public Channel {
 public:
  explicit stream(const char *name) : Channel(name), ring_(new T[capacity()]) {}
  ~stream() {
    if (!empty() && fault().empty())
      fault() = "stream " + name() + " still holds " + std::to_string(held_) + " elements that nobody read";
  }
  stream(const stream &) = delete;
  stream &operator=(const stream &) = delete;

  T read() {
    while (empty()) Region::wait(*this, false);
    const T value = ring_[first_];
    first_ = next(first_);
    held_--;
    return value;
  }
  void write(const T &value) {
    while (full()) Region::wait(*this, true);
    ring_[last_] = value;
    last_ = next(last_);
    held_++;
  }

 private:
  unsigned next(unsigned i) const { return i + 1 == capacity() ? 0 : i + 1; }
  std::unique_ptr<T[]> ring_;
  unsigned first_ = 0, last_ = 0;
};

}  // namespace hls
