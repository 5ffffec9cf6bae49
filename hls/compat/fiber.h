// A function on a stack of its own, which can stop in the middle and go on later.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <ucontext.h>

namespace hls {

class Fiber {
 public:
  explicit Fiber(std::function<void()> body) : body_(std::move(body)), stack_(new char[kStackBytes]) {
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_.get();
    own_.uc_stack.ss_size = kStackBytes;
    own_.uc_link = &caller_;
    makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 0);
  }
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  // Runs until the body pauses or ends.
  void resume() {
    starting() = this;
    swapcontext(&caller_, &own_);
  }
  // Called from the body: back to whoever resumed it.
  void pause() { swapcontext(&own_, &caller_); }
  bool ended() const { return ended_; }

 private:
  static const std::size_t kStackBytes = std::size_t(1) << 20;  // only the pages that are touched take memory

  // makecontext passes nothing but ints portably, so a new fiber finds itself here.
  static Fiber *&starting() {
    static thread_local Fiber *fiber = nullptr;
    return fiber;
  }
  static void enter() {
    Fiber *self = starting();
    self->body_();
    self->ended_ = true;
  }

  std::function<void()> body_;
  std::unique_ptr<char[]> stack_;
  ucontext_t own_, caller_;
  bool ended_ = false;
};

}  // namespace hls
