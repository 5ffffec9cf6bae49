// io_uring by its system calls: two rings shared with the kernel, one of requests and one of results.
#include "io_engine.h"

#if defined(__linux__) && __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

#ifdef IORING_FEAT_EXT_ARG  // headers of Linux 5.11 or later

#include <linux/time_types.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <system_error>
#include <vector>

namespace hillinfer {

namespace {

constexpr unsigned kNeeded = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;
constexpr size_t kFiles = 256;

unsigned load(const unsigned* from) { return __atomic_load_n(from, __ATOMIC_ACQUIRE); }
void store(unsigned* to, unsigned value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); }

class Uring final : public IoEngine {
  public:
    // An errno, or 0. What has been opened by then is closed by the destructor.
    int open(size_t depth, uint8_t* arena, size_t nbytes) {
        io_uring_params params{};
        ring_ = int(syscall(SYS_io_uring_setup, unsigned(depth), &params));
        if (ring_ < 0) return errno;
        if ((params.features & kNeeded) != kNeeded) return ENOSYS;
        const size_t requests = params.sq_off.array + params.sq_entries * sizeof(unsigned);
        const size_t results = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
        rings_bytes_ = requests > results ? requests : results;
        entries_bytes_ = params.sq_entries * sizeof(io_uring_sqe);
        rings_ = map(rings_bytes_, IORING_OFF_SQ_RING);
        entries_ = static_cast<io_uring_sqe*>(map(entries_bytes_, IORING_OFF_SQES));
        if (!rings_ || !entries_) return errno;
        auto at = [&](uint32_t offset) { return reinterpret_cast<unsigned*>(static_cast<char*>(rings_) + offset); };
        sq_tail_ = at(params.sq_off.tail), sq_mask_ = *at(params.sq_off.ring_mask);
        cq_head_ = at(params.cq_off.head), cq_tail_ = at(params.cq_off.tail), cq_mask_ = *at(params.cq_off.ring_mask);
        cqes_ = reinterpret_cast<io_uring_cqe*>(at(params.cq_off.cqes));
        for (unsigned i = 0; i < params.sq_entries; i++) at(params.sq_off.array)[i] = i;

        const iovec whole{arena, nbytes};  // RLIMIT_MEMLOCK may refuse it: then pages are looked up for each request
        fixed_ = syscall(SYS_io_uring_register, ring_, IORING_REGISTER_BUFFERS, &whole, 1) == 0;
        files_.assign(kFiles, -1);
        if (syscall(SYS_io_uring_register, ring_, IORING_REGISTER_FILES, files_.data(), kFiles) < 0) files_.clear();
        return 0;
    }

    ~Uring() override {
        if (rings_) munmap(rings_, rings_bytes_);
        if (entries_) munmap(entries_, entries_bytes_);
        if (ring_ >= 0) close(ring_);
    }

    const char* name() const override { return "io_uring"; }
    bool fixed_buffers() const override { return fixed_; }

    int add_file(int fd) override {
        for (size_t i = 0; i < files_.size(); i++)
            if (files_[i] < 0) return set_file(i, fd) ? int(i) : -1;
        return -1;
    }

    void remove_file(int file) override { set_file(file, -1); }

    void submit(const IoRequest* requests, size_t count) override {
        std::lock_guard lock(submitting_);
        unsigned tail = *sq_tail_;
        for (size_t i = 0; i < count; i++, tail++) {
            const IoRequest& request = requests[i];
            io_uring_sqe& entry = entries_[tail & sq_mask_];
            std::memset(&entry, 0, sizeof entry);
            entry.opcode = fixed_ ? IORING_OP_READ_FIXED : IORING_OP_READ;
            entry.fd = request.file < 0 ? request.fd : request.file;
            entry.flags = request.file < 0 ? 0 : IOSQE_FIXED_FILE;
            entry.addr = reinterpret_cast<uint64_t>(request.to);
            entry.len = request.length;
            entry.off = uint64_t(request.offset);
            entry.user_data = request.tag;
        }
        store(sq_tail_, tail);
        waiting_ += unsigned(count);
        hand_over();
    }

    size_t reap(IoDone* done, size_t room, size_t least, int milliseconds) override {
        size_t got = take(done, room);
        if (got >= least) return got;
        {
            std::lock_guard lock(submitting_);
            if (waiting_) hand_over();
        }
        if (milliseconds) {
            __kernel_timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000LL};
            io_uring_getevents_arg argument{};
            argument.ts = reinterpret_cast<uint64_t>(&time);
            const long woke = syscall(SYS_io_uring_enter, ring_, 0, unsigned(least - got),
                                      IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
            if (woke < 0 && errno != ETIME && errno != EINTR && errno != EAGAIN && errno != EBUSY)
                throw std::system_error(errno, std::generic_category(), "io_uring_enter");
        }
        return got + take(done + got, room - got);
    }

  private:
    void* map(size_t nbytes, uint64_t offset) {
        void* at = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_, off_t(offset));
        return at == MAP_FAILED ? nullptr : at;
    }

    bool set_file(size_t place, int fd) {
        io_uring_files_update update{};
        update.offset = unsigned(place);
        update.fds = reinterpret_cast<uint64_t>(&fd);
        if (syscall(SYS_io_uring_register, ring_, IORING_REGISTER_FILES_UPDATE, &update, 1) < 0) return false;
        files_[place] = fd;
        return true;
    }

    // Give the kernel the requests in the ring. Those it has no memory for right now wait there for the next call.
    void hand_over() {
        while (waiting_) {
            const long taken = syscall(SYS_io_uring_enter, ring_, waiting_, 0, 0, nullptr, 0);
            if (taken >= 0) waiting_ -= unsigned(taken);
            else if (errno == EAGAIN || errno == EBUSY) return;
            else if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "io_uring_enter");
        }
    }

    size_t take(IoDone* done, size_t room) {
        unsigned head = *cq_head_;
        const unsigned tail = load(cq_tail_);
        size_t got = 0;
        for (; got < room && head != tail; head++, got++)
            done[got] = {uint32_t(cqes_[head & cq_mask_].user_data), cqes_[head & cq_mask_].res};
        store(cq_head_, head);
        return got;
    }

    int ring_ = -1;
    void* rings_ = nullptr;
    io_uring_sqe* entries_ = nullptr;
    size_t rings_bytes_ = 0, entries_bytes_ = 0;
    unsigned *sq_tail_ = nullptr, *cq_head_ = nullptr, *cq_tail_ = nullptr;
    unsigned sq_mask_ = 0, cq_mask_ = 0;
    io_uring_cqe* cqes_ = nullptr;
    bool fixed_ = false;
    std::vector<int> files_;  // what the kernel holds open for us; −1: a place that is free
    std::mutex submitting_;
    unsigned waiting_ = 0;  // requests in the ring that the kernel has not taken
};

}  // namespace

std::unique_ptr<IoEngine> open_uring(size_t depth, uint8_t* arena, size_t nbytes, std::string& why) {
    auto engine = std::make_unique<Uring>();
    const int refused = engine->open(depth, arena, nbytes);
    if (!refused) return engine;
    why = std::string("io_uring_setup: ") + std::strerror(refused);
    return nullptr;
}

}  // namespace hillinfer

#else

namespace hillinfer {

std::unique_ptr<IoEngine> open_uring(size_t, uint8_t*, size_t, std::string& why) {
    why = "built without the kernel's headers of io_uring";
    return nullptr;
}

}  // namespace hillinfer

#endif
