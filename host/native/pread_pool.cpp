// Reads by a few threads that wait in pread: for kernels that have no io_uring, or keep it to themselves.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "io_engine.h"

namespace hillinfer {

namespace {

constexpr size_t kThreads = 16;  // where reading in threads stops gaining

class PreadPool final : public IoEngine {
  public:
    explicit PreadPool(size_t depth) : most_(std::min(depth, kThreads)) {}

    ~PreadPool() override {
        {
            std::lock_guard lock(mutex_);
            closing_ = true;
            queue_.clear();
        }
        came_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    const char* name() const override { return "pool"; }

    void submit(const IoRequest* requests, size_t count) override {
        std::lock_guard lock(mutex_);
        queue_.insert(queue_.end(), requests, requests + count);
        while (threads_.size() < std::min(most_, queue_.size())) threads_.emplace_back([this] { work(); });
        if (count > 1) came_.notify_all();
        else came_.notify_one();
    }

    size_t reap(IoDone* done, size_t room, size_t least, int milliseconds) override {
        std::unique_lock lock(mutex_);
        least_ = least;
        if (milliseconds)
            ended_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return done_.size() >= least; });
        const size_t got = std::min(room, done_.size());
        std::copy_n(done_.begin(), got, done);
        done_.erase(done_.begin(), done_.begin() + got);
        return got;
    }

  private:
    void work() {
        std::unique_lock lock(mutex_);
        while (true) {
            came_.wait(lock, [&] { return closing_ || !queue_.empty(); });
            if (closing_) return;
            const IoRequest request = queue_.front();
            queue_.pop_front();
            lock.unlock();
            const ssize_t got = pread(request.fd, request.to, request.length, request.offset);
            const int32_t result = got < 0 ? -errno : int32_t(got);
            lock.lock();
            done_.push_back({request.tag, result});
            if (done_.size() >= least_) ended_.notify_one();
        }
    }

    const size_t most_;
    std::mutex mutex_;
    std::condition_variable came_, ended_;
    std::deque<IoRequest> queue_;
    std::vector<IoDone> done_;
    size_t least_ = 1;  // what the one who waits asks for
    std::vector<std::thread> threads_;
    bool closing_ = false;
};

}  // namespace

std::unique_ptr<IoEngine> open_pread_pool(size_t depth) { return std::make_unique<PreadPool>(depth); }

}  // namespace hillinfer
