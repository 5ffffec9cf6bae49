#include "pool.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace hillinfer {

constexpr int kSpins = 200;  // a few microseconds: about what waking a thread costs

static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

ThreadPool::ThreadPool(int threads) : threads_(std::max(threads, 1)), process_(getpid()) {
    if (threads_ == 1) return;
    shared_ = std::make_unique<Shared>();
    shared_->threads.reserve(threads_ - 1);
    try {
        for (int i = 1; i < threads_; i++) shared_->threads.emplace_back([shared = shared_.get()] { shared->serve(); });
    } catch (const std::system_error&) {  // the system gives no more of them: those that are there do the work
        threads_ = int(shared_->threads.size()) + 1;
    }
}

ThreadPool::~ThreadPool() {
    if (!shared_) return;
    if (getpid() != process_) {
        shared_.release();  // threads that are not here cannot be joined
        return;
    }
    {
        std::lock_guard lock(shared_->mutex);
        shared_->closing = true;
        shared_->job.notify_all();
    }
    for (std::thread& thread : shared_->threads) thread.join();
}

// Claims a slice and does it; false if there is none.
bool ThreadPool::Shared::work_one() {
    uint64_t seen = ticket.load(std::memory_order_acquire);
    do {
        if (uint32_t(seen) == 0) return false;
    } while (!ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire));
    try {
        f(argument, slices - uint32_t(seen));
    } catch (...) {
        std::lock_guard lock(mutex);
        failure = std::current_exception();
    }
    if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        std::lock_guard lock(mutex);
        if (waiting) done.notify_one();
    }
    return true;
}

void ThreadPool::Shared::serve() {
    while (true) {
        while (work_one()) {}
        for (int i = 0; i < kSpins && uint32_t(ticket.load(std::memory_order_relaxed)) == 0; i++) pause();
        if (uint32_t(ticket.load(std::memory_order_relaxed)) != 0) continue;
        std::unique_lock lock(mutex);
        asleep++;
        job.wait(lock, [&] { return closing || uint32_t(ticket.load(std::memory_order_acquire)) != 0; });
        asleep--;
        if (closing) return;
    }
}

void ThreadPool::run_job(size_t slices, Slice f, void* argument) {
    const bool alone = !shared_ || slices < 2 || getpid() != process_ || busy_.test_and_set(std::memory_order_acquire);
    if (alone) {
        for (size_t slice = 0; slice < slices; slice++) f(argument, slice);
        return;
    }
    Shared& shared = *shared_;
    shared.f = f, shared.argument = argument, shared.slices = slices;
    shared.left.store(slices, std::memory_order_relaxed);
    const uint64_t number = (shared.ticket.load(std::memory_order_relaxed) >> 32) + 1;
    bool wake;
    {
        std::lock_guard lock(shared.mutex);
        shared.ticket.store(number << 32 | uint32_t(slices), std::memory_order_release);
        wake = shared.asleep > 0;
    }
    if (wake) shared.job.notify_all();
    while (shared.work_one()) {}
    for (int i = 0; i < kSpins && shared.left.load(std::memory_order_acquire) != 0; i++) pause();
    std::exception_ptr failure;
    {
        std::unique_lock lock(shared.mutex);
        shared.waiting = true;
        shared.done.wait(lock, [&] { return shared.left.load(std::memory_order_acquire) == 0; });
        shared.waiting = false;
        std::swap(failure, shared.failure);
    }
    busy_.clear(std::memory_order_release);
    if (failure) std::rethrow_exception(failure);
}

}  // namespace hillinfer
