#include "row_reader.h"

#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "crc32c.h"

namespace hillinfer {

namespace {

constexpr int64_t kGap = 4096;          // read over a gap this small rather than issue another request
constexpr int64_t kPiece = 1 << 19;     // split long runs, so that they are read in parallel
constexpr size_t kDepth = 512;          // requests in the kernel
constexpr size_t kThreads = 16;         // where reading in threads stops gaining
constexpr size_t kSpareBytes = 8 << 20, kGrain = 1 << 16;

int64_t read_fully(int fd, const Window& window, uint8_t* buffer) {
    int64_t done = 0;
    while (done < window.length) {
        const ssize_t got = pread(fd, buffer + window.place + done, window.length - done, window.offset + done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -errno;
        if (got == 0) break;
        done += got;
    }
    return done;
}

}  // namespace

Buffer::Buffer(size_t size) : nbytes(size) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data = static_cast<uint8_t*>(memory);
}

Buffer::~Buffer() { munmap(data, nbytes); }

RowRead::RowRead(const RowFile& from, std::vector<int64_t> rows) : file(from), positions(std::move(rows)) {
    const int64_t gap = 1 + kGap / file.row_bytes, longest = std::max<int64_t>(1, kPiece / file.row_bytes);
    int64_t place = 0;
    where.reserve(positions.size());
    for (size_t i = 0; i < positions.size();) {
        const int64_t first = positions[i];
        size_t stop = i + 1;
        while (stop < positions.size() && positions[stop] - positions[stop - 1] <= gap &&
               positions[stop] - first < longest)
            stop++;
        const int64_t last = positions[stop - 1];
        const int64_t begin = (file.base + first * file.row_bytes) / file.alignment * file.alignment;
        const int64_t end = file.base + (last + 1) * file.row_bytes;
        const int64_t length = (end - begin + file.alignment - 1) / file.alignment * file.alignment;
        for (; i < stop; i++) where.push_back(place + file.base + positions[i] * file.row_bytes - begin);
        windows.push_back({begin, length, place, first, last});
        place += length;
    }
    results.assign(windows.size(), 0);
    left = windows.size();
}

std::string RowRead::collect(uint8_t* out, const uint32_t* checksums, std::vector<int64_t>& bad) const {
    for (size_t i = 0; i < windows.size(); i++) {
        const std::string where_ = " of tokens " + std::to_string(windows[i].first_row) + "-" +
                                   std::to_string(windows[i].last_row);
        if (results[i] < 0) return std::string(std::strerror(int(-results[i]))) + where_;
        if (results[i] < windows[i].length) return "the file is shorter than what was written" + where_;
    }
    for (size_t i = 0; i < positions.size(); i++, out += file.row_bytes) {
        std::memcpy(out, buffer->data + where[i], file.row_bytes);
        if (checksum(out, file.row_bytes) != checksums[positions[i]]) bad.push_back(positions[i]);
    }
    return {};
}

RowReader::RowReader(bool use_kernel) {
    if (use_kernel && syscall(SYS_io_setup, kDepth, &context_) < 0) context_ = 0;
}

RowReader::~RowReader() { close(); }

void RowReader::close() {
    if (context_) syscall(SYS_io_destroy, context_);  // waits for what is in flight
    context_ = 0;
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
        jobs_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    reads_.clear();
    spare_.clear();
}

std::shared_ptr<Buffer> RowReader::take(size_t nbytes) {
    for (auto& each : spare_)
        if (each.use_count() == 1 && each->nbytes >= nbytes) return each;
    auto fresh = std::make_shared<Buffer>((nbytes + kGrain - 1) / kGrain * kGrain);
    if (fresh->nbytes <= kSpareBytes) {
        spare_.push_back(fresh);
        std::sort(spare_.begin(), spare_.end(), [](auto& a, auto& b) { return a->nbytes > b->nbytes; });
        if (spare_.size() > 2) spare_.pop_back();  // the largest of a usual size are kept
    }
    return fresh;
}

std::shared_ptr<RowRead> RowReader::start(const RowFile& file, std::vector<int64_t> positions) {
    auto read = std::make_shared<RowRead>(file, std::move(positions));
    if (read->windows.empty()) return read;
    const Window& last = read->windows.back();
    read->buffer = take(last.place + last.length);
    read->number = next_++ & 0x7fffffff;
    if (context_ && file.direct) submit_to_kernel(read);
    else submit_to_threads(read);
    return read;
}

void RowReader::submit_to_kernel(const std::shared_ptr<RowRead>& read) {
    const size_t count = read->windows.size();
    reads_[read->number] = read;
    std::vector<iocb> blocks(count);  // the kernel copies them when they are submitted
    std::vector<iocb*> pointers(count);
    for (size_t i = 0; i < count; i++) {
        const Window& window = read->windows[i];
        blocks[i].aio_data = read->number << 32 | i;
        blocks[i].aio_lio_opcode = IOCB_CMD_PREAD;
        blocks[i].aio_fildes = uint32_t(read->file.fd);
        blocks[i].aio_buf = reinterpret_cast<uint64_t>(read->buffer->data + window.place);
        blocks[i].aio_nbytes = uint64_t(window.length);
        blocks[i].aio_offset = window.offset;
        pointers[i] = &blocks[i];
    }
    for (size_t done = 0; done < count;) {
        const size_t many = std::min(count - done, kDepth - flying_);
        if (many == 0) {
            reap(1);
            continue;
        }
        const long taken = syscall(SYS_io_submit, context_, long(many), pointers.data() + done);
        if (taken < 0 && errno == EAGAIN && flying_) {
            reap(1);
        } else if (taken < 0 && errno != EINTR) {
            std::fill(read->results.begin() + done, read->results.end(), -errno);
            read->left -= count - done;
            return;
        } else if (taken > 0) {
            done += taken;
            flying_ += taken;
        }
    }
}

bool RowReader::reap(size_t least) {
    io_event events[kDepth];
    const long got =
        syscall(SYS_io_getevents, context_, long(std::min(least, flying_)), long(kDepth), events, nullptr);
    if (got < 0 && errno == EINTR) return false;
    if (got < 0) throw std::system_error(errno, std::generic_category(), "io_getevents");
    flying_ -= got;
    for (long i = 0; i < got; i++) {
        RowRead& read = *reads_.at(events[i].data >> 32);
        read.results[events[i].data & 0xffffffff] = events[i].res;
        read.left--;
    }
    return got > 0;
}

void RowReader::submit_to_threads(const std::shared_ptr<RowRead>& read) {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < read->windows.size(); i++) queue_.emplace_back(read, i);
    while (threads_.size() < std::min(kThreads, queue_.size())) threads_.emplace_back([this] { work(); });
    jobs_.notify_all();
}

void RowReader::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        jobs_.wait(lock, [&] { return closing_ || !queue_.empty(); });
        if (queue_.empty()) return;
        auto [read, window] = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        const int64_t result = read_fully(read->file.fd, read->windows[window], read->buffer->data);
        lock.lock();
        read->results[window] = result;
        if (--read->left == 0) done_.notify_all();
    }
}

bool RowReader::finish(RowRead& read) {
    if (context_ && read.file.direct) {
        while (read.left)
            if (!reap(read.left)) return false;
        reads_.erase(read.number);
        return true;
    }
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, std::chrono::milliseconds(100), [&] { return read.left == 0; });
}

}  // namespace hillinfer
