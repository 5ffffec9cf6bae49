#include "scan.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "crc32c.h"
#include "variant.h"

namespace hillinfer {

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Launch::Launch(Query query, int file, std::vector<Run> runs, uint32_t tag, int min_score)
    : query_(std::move(query)), file_(file), runs_(std::move(runs)), tag_(tag), min_score_(min_score) {
    for (const Run& run : runs_) blocks_ += (run.tokens + kBlock - 1) / kBlock;
    slots_.resize(blocks_ * kSlotWords);
}

bool Launch::wait(size_t block, double seconds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [&] { return done_ > block || cancelled_ || !failure_.empty(); });
}

size_t Launch::done() {
    std::lock_guard lock(mutex_);
    return cancelled_ ? 0 : done_;
}

void Launch::cancel() {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
}

std::string Launch::failure() {
    std::lock_guard lock(mutex_);
    return failure_;
}

void Launch::fail(std::string why) {
    std::lock_guard lock(mutex_);
    failure_ = std::move(why);
    changed_.notify_all();
}

bool Launch::emit() {
    std::lock_guard lock(mutex_);
    done_++;
    ended = now();
    changed_.notify_all();
    return !cancelled_;
}

void Launch::run(std::vector<uint8_t>& buffer) {
    started = now();
    const size_t bytes = tile_bytes(query_.heads, query_.head_dim);
    buffer.resize(std::max(buffer.size(), bytes * (kBlock / kTile)));
    int16_t scores[kBlock];
    uint32_t* slot = slots_.data();
    for (const Run& run : runs_) {
        const size_t of = (run.tokens + kBlock - 1) / kBlock;
        for (size_t index = 0; index < of; index++, slot += kSlotWords) {
            const size_t tile = index * (kBlock / kTile);
            const size_t tiles = std::min<size_t>(kBlock / kTile, run.tokens / kTile - tile);
            for (size_t done = 0; done < tiles * bytes;) {
                const ssize_t got =
                    pread(file_, buffer.data() + done, tiles * bytes - done, run.offset + tile * bytes + done);
                if (got < 0 && errno == EINTR) continue;
                if (got < 0) return fail(std::string("reading it failed: ") + std::strerror(errno));
                if (got == 0) return fail("its file is shorter than what was written");
                done += got;
            }
            for (size_t t = 0; t < tiles; t++)
                if (checksum(buffer.data() + t * bytes, bytes) != run.checksums[tile + t])
                    return fail("damaged within tokens " + std::to_string(run.first + (tile + t) * kTile) + "-" +
                                std::to_string(run.first + (tile + t + 1) * kTile - 1));
            variant().score(query_, buffer.data(), run.exponents.data() + tile * query_.heads, tiles, scores);
            write_slot(scores, tiles * kTile, run.first + index * kBlock, index, of, slot);
            if (!emit()) return;
        }
    }
}

// kernel.md, "ABI": 1024 tuples (uint16 offset, int16 score), then the trailer.
void Launch::write_slot(const int16_t* scores, size_t n, int64_t first, size_t index, size_t of,
                        uint32_t* slot) const {
    uint32_t* tuple = slot;
    int most = INT16_MIN;
    if (min_score_ <= INT16_MIN) {
        for (size_t i = 0; i < n; i++) tuple[i] = uint32_t(uint16_t(scores[i])) << 16 | uint32_t(i);
        tuple += n;
    } else {
        for (size_t i = 0; i < n; i++)
            if (scores[i] >= min_score_) *tuple++ = uint32_t(uint16_t(scores[i])) << 16 | uint32_t(i);
    }
    for (size_t i = 0; i < n; i++) most = std::max<int>(most, scores[i]);
    const uint32_t emitted = uint32_t(tuple - slot);
    std::fill(tuple, slot + kBlock, 0xffffffffu);
    const uint32_t trailer[16] = {0x31534b51, tag_, uint32_t(first), uint32_t(n), emitted, uint32_t(most),
                                  0, uint32_t(index), uint32_t(of), 0, 0, 0, 0, 0, 0, ~tag_};
    std::memcpy(slot + kBlock, trailer, sizeof trailer);
}

ScanThread::ScanThread() : thread_([this] { work(); }) {}

ScanThread::~ScanThread() { close(); }

void ScanThread::submit(std::shared_ptr<Launch> launch) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(launch));
    changed_.notify_one();
}

void ScanThread::close() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
        for (auto& launch : queue_) launch->cancel();
        queue_.clear();
        changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
}

void ScanThread::work() {
    std::vector<uint8_t> buffer;
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
        if (queue_.empty()) return;
        std::shared_ptr<Launch> launch = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        try {
            launch->run(buffer);
        } catch (const std::exception& error) {  // out of memory: for the engine to tell, not for this thread to die of
            launch->fail(error.what());
        }
        launch.reset();
        lock.lock();
    }
}

}  // namespace hillinfer
