// Threads of our own: one fork per call, and the caller works too.
//
// A job is cut into slices that whoever is free takes, in order. The caller takes what no thread has claimed, so a thread
// that a busy neighbour keeps from running delays nobody: only slices somebody has begun are waited for. Threads without
// work spin for a moment (the next job of a step is near) and then sleep; nobody spins on a core that another could use.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace hillinfer {

class ThreadPool {
  public:
    explicit ThreadPool(int threads = 1);  // the caller is one of them; fewer where the system gives no more
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const { return threads_; }

    // f(slice) for each slice in 0 … slices − 1, once each, by any thread; returns when all are done, and throws what
    // one of them threw. Called while another call runs (from a slice, or by another thread), and in a process that was
    // forked off this one, the caller does them all.
    template <typename F>
    void run(size_t slices, F&& f) {
        using Plain = std::remove_reference_t<F>;
        run_job(slices, [](void* f, size_t slice) { (*static_cast<Plain*>(f))(slice); },
                const_cast<void*>(static_cast<const void*>(&f)));
    }

  private:
    using Slice = void (*)(void* f, size_t slice);

    // What the threads share with the caller. It is left behind in a forked process, which has no such threads.
    struct Shared {
        std::atomic<uint64_t> ticket{0};  // number of the job << 32 | slices nobody has claimed
        std::atomic<size_t> left{0};      // slices of the job that are not done
        Slice f = nullptr;                // the job: stays as it is while a claimed slice is not done
        void* argument = nullptr;
        size_t slices = 0;
        std::exception_ptr failure;       // under the mutex
        std::mutex mutex;
        std::condition_variable job, done;
        int asleep = 0;                   // threads; under the mutex
        bool waiting = false;             // the caller; under the mutex
        bool closing = false;             // under the mutex
        std::vector<std::thread> threads;

        bool work_one();
        void serve();
    };

    void run_job(size_t slices, Slice f, void* argument);

    int threads_;
    int64_t process_;  // whose threads these are
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
    std::unique_ptr<Shared> shared_;
};

}  // namespace hillinfer
