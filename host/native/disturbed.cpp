// A slow or failing disk, for tests: an engine that holds results back, or puts others in their place.
#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <vector>

#include "io_engine.h"

namespace hillinfer {

namespace {

using Clock = std::chrono::steady_clock;

class Disturbed final : public IoEngine {
  public:
    Disturbed(std::unique_ptr<IoEngine> engine, double delay, size_t every, int32_t result)
        : engine_(std::move(engine)),
          delay_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(delay))),
          every_(every),
          result_(result) {}

    const char* name() const override { return engine_->name(); }
    bool fixed_buffers() const override { return engine_->fixed_buffers(); }
    int add_file(int fd) override { return engine_->add_file(fd); }
    void remove_file(int file) override { engine_->remove_file(file); }
    void submit(const IoRequest* requests, size_t count) override { engine_->submit(requests, count); }

    size_t reap(IoDone* done, size_t room, size_t least, int milliseconds) override {
        const auto until = Clock::now() + std::chrono::milliseconds(milliseconds);
        std::vector<IoDone> fresh(room);
        size_t got = 0;
        while (true) {
            const size_t came = engine_->reap(fresh.data(), room, held_.empty() ? 1 : 0, milliseconds ? 1 : 0);
            for (size_t i = 0; i < came; i++) {
                if (every_ && ++count_ % every_ == 0) fresh[i].result = std::min(result_, fresh[i].result);
                held_.push_back({Clock::now() + delay_, fresh[i]});
            }
            for (; got < room && !held_.empty() && held_.front().due <= Clock::now(); held_.pop_front())
                done[got++] = held_.front().done;
            if (got >= least || Clock::now() >= until) return got;
            if (!held_.empty()) std::this_thread::sleep_until(std::min(until, held_.front().due));
        }
    }

  private:
    struct Held {
        Clock::time_point due;
        IoDone done;
    };

    std::unique_ptr<IoEngine> engine_;
    const Clock::duration delay_;
    const size_t every_;
    const int32_t result_;
    size_t count_ = 0;
    std::deque<Held> held_;
};

}  // namespace

std::unique_ptr<IoEngine> disturb(std::unique_ptr<IoEngine> engine, double delay, size_t every, int32_t result) {
    return std::make_unique<Disturbed>(std::move(engine), delay, every, result);
}

}  // namespace hillinfer
