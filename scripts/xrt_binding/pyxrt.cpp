// pyxrt: XRT's C++ API in Python, with the names and signatures of the module that AMD's packages bring (2.13).
//
// Written from the public headers of libxrt-dev. Three things differ, all on the safe side: calls that block release
// the interpreter's lock, runs can be aborted, and kernel(...) raises TypeError for an argument that fits nothing, where
// AMD's drops it.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <experimental/xrt_xclbin.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

namespace nb = nanobind;
using namespace nb::literals;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;
using Info = xrt::info::device;

namespace {

// What xrt::device::get_info returns depends on its template argument; Python gets a string in every case.
template <Info key>
std::string info_of(const xrt::device &device) {
    const auto value = device.get_info<key>();
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, xrt::uuid>)
        return value.to_string();
    else if constexpr (std::is_arithmetic_v<Value>)
        return std::to_string(value);
    else
        return value;
}

std::string info(const xrt::device &device, Info key) {
    switch (key) {
    case Info::bdf: return info_of<Info::bdf>(device);
    case Info::interface_uuid: return info_of<Info::interface_uuid>(device);
    case Info::kdma: return info_of<Info::kdma>(device);
    case Info::max_clock_frequency_mhz: return info_of<Info::max_clock_frequency_mhz>(device);
    case Info::m2m: return info_of<Info::m2m>(device);
    case Info::name: return info_of<Info::name>(device);
    case Info::nodma: return info_of<Info::nodma>(device);
    case Info::offline: return info_of<Info::offline>(device);
    case Info::electrical: return info_of<Info::electrical>(device);
    case Info::thermal: return info_of<Info::thermal>(device);
    case Info::mechanical: return info_of<Info::mechanical>(device);
    case Info::memory: return info_of<Info::memory>(device);
    case Info::platform: return info_of<Info::platform>(device);
    case Info::pcie_info: return info_of<Info::pcie_info>(device);
    case Info::host: return info_of<Info::host>(device);
    case Info::dynamic_regions: return info_of<Info::dynamic_regions>(device);
    default: throw std::runtime_error("pyxrt knows no such xrt_info_device");
    }
}

// Python's view of memory that something else owns, held for as long as this lives.
class View {
  public:
    explicit View(nb::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE))
            throw nb::python_error();
    }
    ~View() { PyBuffer_Release(&view); }
    View(const View &) = delete;
    View &operator=(const View &) = delete;

    const void *data() const { return view.buf; }
    size_t size() const { return static_cast<size_t>(view.len); }

  private:
    Py_buffer view;
};

void write(xrt::bo &bo, nb::handle source, size_t seek) {
    const View bytes(source);
    nb::gil_scoped_release unlocked;
    bo.write(bytes.data(), bytes.size(), seek);
}

nb::ndarray<nb::numpy, int8_t, nb::ndim<1>> read(xrt::bo &bo, size_t size, size_t skip) {
    auto *bytes = new int8_t[size];
    nb::capsule owner(bytes, [](void *memory) noexcept { delete[] static_cast<int8_t *>(memory); });
    {
        nb::gil_scoped_release unlocked;
        bo.read(bytes, size, skip);
    }
    return {bytes, {size}, owner};
}

// As with AMD's module, the view does not keep the buffer alive.
nb::object map(xrt::bo &bo) {
    void *memory = bo.map();
    PyObject *view = PyMemoryView_FromMemory(static_cast<char *>(memory), static_cast<Py_ssize_t>(bo.size()), PyBUF_WRITE);
    if (!view)
        throw nb::python_error();
    return nb::steal(view);
}

bool over(const xrt::run &run) {
    const ert_cmd_state state = run.state();
    return state >= ERT_CMD_STATE_COMPLETED && state != ERT_CMD_STATE_SUBMITTED;
}

// XRT keeps no reference to what it runs: a launch that Python forgets before it is over is kept here until it is. With
// it goes its device, so whoever opens one asks first.
class Running {
  public:
    void add(const xrt::run &run) {
        const std::lock_guard lock(mutex);
        forget();
        runs.push_back(run);
    }
    void forget_what_is_over() {
        const std::lock_guard lock(mutex);
        forget();
    }

  private:
    void forget() { runs.erase(std::remove_if(runs.begin(), runs.end(), over), runs.end()); }

    std::mutex mutex;
    std::vector<xrt::run> runs;
};
Running &running = *new Running;  // never destroyed, as a launch may hang to the end

void start(xrt::run &run) {
    running.add(run);
    run.start();
}

template <typename Which>
void open_device(xrt::device *device, const Which &which) {
    running.forget_what_is_over();
    new (device) xrt::device(which);
}

xrt::run call(xrt::kernel &kernel, nb::args arguments) {
    xrt::run run(kernel);
    int index = 0;
    for (nb::handle argument : arguments) {
        if (nb::isinstance<xrt::bo>(argument))
            run.set_arg(index, nb::cast<xrt::bo &>(argument));
        else if (int scalar = 0; nb::try_cast(argument, scalar))
            run.set_arg(index, scalar);
        else
            throw nb::type_error("a kernel's arguments are bo objects and 32-bit signed integers");
        ++index;
    }
    nb::gil_scoped_release unlocked;
    start(run);
    return run;
}

// In emulation XRT's wait knows no timeout, as the shim's own never says that nothing happened. So the state is asked for
// instead, which is also the quicker way there.
ert_cmd_state wait(const xrt::run &run, unsigned milliseconds) {
    static const bool emulation = std::getenv("XCL_EMULATION_MODE") != nullptr;
    if (!emulation)
        return run.wait(milliseconds);
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
    for (;;) {
        if (over(run)) {
            running.forget_what_is_over();
            return run.state();
        }
        if (milliseconds && Clock::now() > end)
            return ERT_CMD_STATE_TIMEOUT;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

void define_enums(nb::module_ &m) {
    m.attr("XCL_BO_FLAGS_NONE") = nb::int_(XCL_BO_FLAGS_NONE);

    nb::enum_<xclBOSyncDirection>(m, "xclBOSyncDirection")
        .value("XCL_BO_SYNC_BO_TO_DEVICE", XCL_BO_SYNC_BO_TO_DEVICE)
        .value("XCL_BO_SYNC_BO_FROM_DEVICE", XCL_BO_SYNC_BO_FROM_DEVICE);

    nb::enum_<ert_cmd_state>(m, "ert_cmd_state")
        .value("ERT_CMD_STATE_NEW", ERT_CMD_STATE_NEW)
        .value("ERT_CMD_STATE_QUEUED", ERT_CMD_STATE_QUEUED)
        .value("ERT_CMD_STATE_RUNNING", ERT_CMD_STATE_RUNNING)
        .value("ERT_CMD_STATE_COMPLETED", ERT_CMD_STATE_COMPLETED)
        .value("ERT_CMD_STATE_ERROR", ERT_CMD_STATE_ERROR)
        .value("ERT_CMD_STATE_ABORT", ERT_CMD_STATE_ABORT)
        .value("ERT_CMD_STATE_SUBMITTED", ERT_CMD_STATE_SUBMITTED)
        .value("ERT_CMD_STATE_TIMEOUT", ERT_CMD_STATE_TIMEOUT)
        .value("ERT_CMD_STATE_NORESPONSE", ERT_CMD_STATE_NORESPONSE)
        .value("ERT_CMD_STATE_SKERROR", ERT_CMD_STATE_SKERROR)
        .value("ERT_CMD_STATE_SKCRASHED", ERT_CMD_STATE_SKCRASHED);

    nb::enum_<Info>(m, "xrt_info_device")
        .value("bdf", Info::bdf)
        .value("interface_uuid", Info::interface_uuid)
        .value("kdma", Info::kdma)
        .value("max_clock_frequency_mhz", Info::max_clock_frequency_mhz)
        .value("m2m", Info::m2m)
        .value("name", Info::name)
        .value("nodma", Info::nodma)
        .value("offline", Info::offline)
        .value("electrical", Info::electrical)
        .value("thermal", Info::thermal)
        .value("mechanical", Info::mechanical)
        .value("memory", Info::memory)
        .value("platform", Info::platform)
        .value("pcie_info", Info::pcie_info)
        .value("host", Info::host)
        .value("dynamic_regions", Info::dynamic_regions);
}

void define_xclbin(nb::module_ &m) {
    nb::class_<xrt::uuid>(m, "uuid")
        .def(nb::init<const std::string &>())
        .def("to_string", &xrt::uuid::to_string);

    nb::class_<xrt::xclbin> xclbin(m, "xclbin");
    nb::class_<xrt::xclbin::ip>(xclbin, "xclbinip").def("get_name", &xrt::xclbin::ip::get_name);
    nb::class_<xrt::xclbin::kernel>(xclbin, "xclbinkernel")
        .def("get_name", &xrt::xclbin::kernel::get_name)
        .def("get_num_args", &xrt::xclbin::kernel::get_num_args);
    nb::class_<xrt::xclbin::mem>(xclbin, "xclbinmem")
        .def("get_tag", &xrt::xclbin::mem::get_tag)
        .def("get_base_address", &xrt::xclbin::mem::get_base_address)
        .def("get_size_kb", &xrt::xclbin::mem::get_size_kb)
        .def("get_used", &xrt::xclbin::mem::get_used)
        .def("get_index", &xrt::xclbin::mem::get_index);
    xclbin.def(nb::init<>())
        .def(nb::init<const std::string &>(), Unlocked())
        .def("get_ips", &xrt::xclbin::get_ips)
        .def("get_kernels", &xrt::xclbin::get_kernels)
        .def("get_xsa_name", &xrt::xclbin::get_xsa_name)
        .def("get_uuid", &xrt::xclbin::get_uuid)
        .def("get_mems", &xrt::xclbin::get_mems);
}

void define_device(nb::module_ &m) {
    nb::class_<xrt::device>(m, "device")
        .def(nb::init<>())
        .def("__init__", &open_device<unsigned>, Unlocked())
        .def("__init__", &open_device<std::string>, Unlocked())
        .def("load_xclbin", [](xrt::device &d, const std::string &path) { return d.load_xclbin(path); }, Unlocked())
        .def("load_xclbin", [](xrt::device &d, const xrt::xclbin &image) { return d.load_xclbin(image); }, Unlocked())
        .def("get_xclbin_uuid", &xrt::device::get_xclbin_uuid)
        .def("get_info", &info, Unlocked());
}

void define_kernel(nb::module_ &m) {
    nb::class_<xrt::kernel> kernel(m, "kernel");
    using Mode = xrt::kernel::cu_access_mode;
    nb::enum_<Mode>(kernel, "cu_access_mode")
        .value("exclusive", Mode::exclusive)
        .value("shared", Mode::shared)
        .value("none", Mode::none)
        .export_values();
    kernel.def(nb::init<const xrt::device &, const xrt::uuid &, const std::string &, Mode>(), Unlocked())
        .def(nb::init<const xrt::device &, const xrt::uuid &, const std::string &>(), Unlocked())
        .def("__call__", &call)
        .def("group_id", &xrt::kernel::group_id);

    nb::class_<xrt::run>(m, "run")
        .def(nb::init<>())
        .def(nb::init<const xrt::kernel &>(), Unlocked())
        .def("set_arg", [](xrt::run &r, int index, const xrt::bo &buffer) { r.set_arg(index, buffer); })
        .def("set_arg", [](xrt::run &r, int index, int scalar) { r.set_arg(index, scalar); })
        .def("start", &start, Unlocked())
        .def("wait", [](const xrt::run &r) { return wait(r, 0); }, Unlocked())  // without a timeout
        .def("wait", &wait, Unlocked())
        .def("state", &xrt::run::state, Unlocked())
        .def("abort", &xrt::run::abort, Unlocked());  // which AMD's module lacks
}

void define_bo(nb::module_ &m) {
    nb::class_<xrt::bo> bo(m, "bo");
    using Flags = xrt::bo::flags;
    nb::enum_<Flags>(bo, "flags")
        .value("normal", Flags::normal)
        .value("cacheable", Flags::cacheable)
        .value("device_only", Flags::device_only)
        .value("host_only", Flags::host_only)
        .value("p2p", Flags::p2p)
        .value("svm", Flags::svm)
        .export_values();
    bo.def(nb::init<const xrt::device &, size_t, Flags, xrt::memory_group>(), Unlocked())
        .def(nb::init<const xrt::bo &, size_t, size_t>(), Unlocked())
        .def("write", &write)
        .def("read", &read)
        .def("sync", [](xrt::bo &b, xclBOSyncDirection way, size_t size, size_t at) { b.sync(way, size, at); }, Unlocked())
        .def("map", &map)
        .def("size", &xrt::bo::size)
        .def("address", &xrt::bo::address);
}

}  // namespace

NB_MODULE(pyxrt, m) {
    m.doc() = "XRT's C++ API in Python, with the names and signatures of AMD's own module";
    nb::set_leak_warnings(false);  // buffers may outlive the interpreter's modules; XRT frees them at exit
    define_enums(m);
    define_xclbin(m);
    define_device(m);
    define_kernel(m);
    define_bo(m);
}
