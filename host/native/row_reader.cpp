#include "row_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace hillinfer {

namespace {

constexpr int kPatience = 100;    // milliseconds after which one who waits looks for a signal
constexpr size_t kMany = 96;      // requests: to start them takes a millisecond, far longer than to wake a thread
constexpr size_t kAtOnce = 32;    // that the attendant starts or takes in before it lets go of the lock

}  // namespace

RowReader::RowReader(const ReaderSettings& wanted)
    : settings(wanted), arena_(wanted.arena_bytes), slots_(wanted.depth), done_(wanted.depth), process_(getpid()) {
    const bool any = settings.engine == "auto";
    if (any || settings.engine == "io_uring")
        engine_ = open_uring(settings.depth, arena_.data, arena_.nbytes, refused_);
    if (!engine_ && (any || settings.engine == "pool")) engine_ = open_pread_pool(settings.depth);
    if (!engine_) throw std::invalid_argument(refused_.empty() ? "no such engine" : refused_);
    for (size_t i = settings.depth; i-- > 0;) free_.push_back(uint32_t(i));
}

RowReader::~RowReader() { close(); }

void RowReader::close() {
    dismiss();
    std::unique_lock lock(mutex_);
    if (!engine_) return;
    for (auto& read : queue_) {
        read->error = read->error ? read->error : ECANCELED;
        read->left -= read->windows.size() - read->next;
        read->next = read->windows.size();
    }
    queue_.clear();
    try {
        while (flying() || gathering_) gather(lock, slots_.size() - free_.size(), true);
    } catch (const std::system_error&) {  // the engine is no more: there is nothing to wait for
    }
    engine_.reset();
}

int RowReader::add_file(int fd) {
    std::lock_guard lock(mutex_);
    return engine_ ? engine_->add_file(fd) : -1;
}

void RowReader::remove_file(int file) {
    std::lock_guard lock(mutex_);
    if (engine_ && file >= 0) engine_->remove_file(file);
}

void RowReader::disturb(double delay, size_t every, int32_t result) {
    std::unique_lock lock(mutex_);
    while (flying() || gathering_) gather(lock, 1, true);
    engine_ = hillinfer::disturb(std::move(engine_), delay, every, result);
}

std::shared_ptr<RowRead> RowReader::start(const RowFile& file, int64_t base, std::vector<int64_t> positions,
                                          std::vector<uint32_t> checksums, uint8_t* out) {
    auto read = std::make_shared<RowRead>(file, base, std::move(positions), std::move(checksums), out,
                                          settings.gap_bytes, int64_t(settings.request_bytes));
    std::unique_lock lock(mutex_);
    if (!engine_) throw std::runtime_error("the reader is closed");
    if (read->windows.empty()) return read;
    queue_.push_back(read);
    if (read->windows.size() >= kMany) {
        hire();
        return read;
    }
    fill(settings.depth);
    if (!queue_.empty()) gather(lock, 0, false);  // no room: something may have come back by now
    return read;
}

// Have the attendant look after the reads there are. Under the lock.
void RowReader::hire() {
    long_ = true;
    if (!attendant_) attendant_ = std::make_unique<std::thread>([this] { attend(); });
    wanted_.notify_one();
}

void RowReader::attend() {
    std::unique_lock lock(mutex_);
    while (true) {
        wanted_.wait(lock, [&] { return closing_ || long_; });
        if (closing_) return;
        try {
            while (!closing_ && engine_ && (flying() || !queue_.empty())) {
                fill(kAtOnce);
                gather(lock, queue_.empty() || free_.empty() ? std::min(kAtOnce, slots_.size() - free_.size()) : 0, true);
            }
        } catch (...) {
            broken_ = std::current_exception();
            gathered_.notify_all();
        }
        long_ = false;
    }
}

void RowReader::dismiss() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
    }
    wanted_.notify_all();
    if (!attendant_) return;
    if (process_ == getpid()) attendant_->join(), attendant_.reset();
    else attendant_.release();  // a thread of the process this one was forked off: there is none to join
}

IoRequest RowReader::request(uint32_t slot) const {
    const RowRead& read = *slots_[slot].read;
    const Window& window = read.windows[slots_[slot].window];
    uint8_t* to = arena_.data + slots_[slot].place + window.got;
    return {read.file.fd, read.file.file, to, window.length - window.got, window.offset + window.got, slot};
}

// Start as many of the windows that wait as there is room for, `most` at most.
void RowReader::fill(size_t most) {
    batch_.clear();
    while (!free_.empty() && !queue_.empty() && batch_.size() < most) {
        const auto read = queue_.front();
        const size_t place = arena_.take(read->windows[read->next].length);
        if (place == Arena::kNone) break;
        const uint32_t slot = free_.back();
        free_.pop_back();
        slots_[slot] = {read, read->next++, place};
        batch_.push_back(request(slot));
        if (read->next == read->windows.size()) queue_.pop_front();
    }
    if (!batch_.empty()) engine_->submit(batch_.data(), batch_.size());
}

// Take in what is done, once `least` requests are; false if the time was over or a signal came first. One thread asks the
// engine at a time, and what it takes in is everyone's.
bool RowReader::gather(std::unique_lock<std::mutex>& lock, size_t least, bool wait) {
    if (gathering_)
        return wait && gathered_.wait_for(lock, std::chrono::milliseconds(kPatience)) == std::cv_status::no_timeout;
    if (!engine_) return false;
    size_t got;
    if (wait) {
        gathering_ = true;
        lock.unlock();
        try {
            got = engine_->reap(done_.data(), done_.size(), least, kPatience);
        } catch (...) {
            lock.lock();
            gathering_ = false;
            gathered_.notify_all();
            throw;
        }
        lock.lock();
        gathering_ = false;
    } else {
        got = engine_->reap(done_.data(), done_.size(), 0, 0);
    }
    for (size_t i = 0; i < got; i++) complete(done_[i]);
    fill(std::max(got, kAtOnce));
    gathered_.notify_all();
    return got > 0;
}

void RowReader::complete(const IoDone& done) {
    Slot& slot = slots_[done.tag];
    RowRead& read = *slot.read;
    Window& window = read.windows[slot.window];
    if (read.out) {
        if (read.goes_on(window, done.result)) {
            const IoRequest again = request(done.tag);
            engine_->submit(&again, 1);
            return;
        }
        read.land(window, arena_.data + slot.place, done.result);
        if (read.error) forget(read);
    }
    read.left--;
    arena_.give(slot.place, window.length);
    slot.read.reset();
    free_.push_back(done.tag);
}

// Start nothing more of a read.
void RowReader::forget(RowRead& read) {
    if (read.next == read.windows.size()) return;
    queue_.erase(std::find_if(queue_.begin(), queue_.end(), [&](auto& each) { return each.get() == &read; }));
    read.left -= read.windows.size() - read.next;
    read.next = read.windows.size();
}

bool RowReader::ready(RowRead& read) {
    std::unique_lock lock(mutex_);
    gather(lock, 0, false);
    while (read.left && read.told == read.arrived.size()) {
        if (broken_) std::rethrow_exception(broken_);
        fill(settings.depth);
        const size_t least = std::min(read.flying(), settings.depth / 8);
        if (!gather(lock, std::max<size_t>(1, least), true)) return false;
    }
    return true;
}

std::vector<int64_t> RowReader::take(RowRead& read) {
    std::lock_guard lock(mutex_);
    std::vector<int64_t> fresh(read.arrived.begin() + read.told, read.arrived.end());
    read.told = read.arrived.size();
    return fresh;
}

bool RowReader::finish(RowRead& read) {
    std::unique_lock lock(mutex_);
    while (read.left) {  // a quarter of the depth at a time: the disk keeps busy while rows are copied and checked
        if (broken_) std::rethrow_exception(broken_);
        fill(settings.depth);
        const size_t least = std::min(read.flying(), settings.depth / 4);
        if (!gather(lock, std::max<size_t>(1, least), true)) return false;
    }
    return true;
}

void RowReader::give_up(RowRead& read) {
    std::lock_guard lock(mutex_);
    read.out = nullptr;
    forget(read);
}

void RowReader::pump() {
    std::unique_lock lock(mutex_);
    gather(lock, 0, false);
}

}  // namespace hillinfer
