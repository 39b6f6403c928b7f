#include "topologies/nccl/this_machine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/modify.h"
#include "topologies/host_facts.h"
#include "topologies/nccl/nccl_numbers.h"
#include "topologies/nccl/nccl_xml.h"
#include "topologies/nccl/nvidia_smi.h"

namespace xccl {
namespace {

constexpr int kCommandSeconds = 30;
constexpr int kNcclSeconds = 120;
constexpr int kNotFound = 127;  // the shell's status for a missing command

struct Finished {
  std::string output;  // stdout and stderr
  int status = 0;      // exit status; 128 + signal; kNotFound; -1: the time limit
};

// Runs `work` in a child process, which ends with this one; its result is the exit status.
Finished RunInChild(const std::function<int()>& work, int seconds) {
  Finished finished;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Finished{"", -1};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it died before the line above
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    _exit(work());
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return Finished{"", -1};
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  bool in_time = true;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd poll_end{ends[0], POLLIN, 0};
    in_time = left.count() > 0 && poll(&poll_end, 1, static_cast<int>(left.count())) > 0;
    if (!in_time) break;
    char buffer[4096];
    const ssize_t got = read(ends[0], buffer, sizeof(buffer));
    if (got <= 0) break;
    finished.output.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  finished.status = !in_time ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

// The first line that is not blank, without final periods.
std::string FirstLine(const std::string& text) {
  for (const std::string& line : Split(text, '\n')) {
    std::string trimmed(Trim(line));
    while (trimmed.ends_with('.')) trimmed.pop_back();
    if (!trimmed.empty()) return trimmed;
  }
  return "";
}

// The output of one nvidia-smi command, or why there is none.
StatusOr<std::string> NvidiaSmi(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"nvidia-smi"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  Finished finished = RunInChild(
      [&] {
        execvp(words[0], words.data());
        return kNotFound;
      },
      kCommandSeconds);
  if (finished.status == kNotFound)
    return InvalidInput(
        "this machine: no nvidia-smi on PATH; expected an NVIDIA GPU and its driver; hint: any NCCL program "
        "run with "
        "NCCL_TOPO_DUMP_FILE=topo.xml writes a file that topo reads");
  if (finished.status == -1)
    return InvalidInput(fmt::format("this machine: {}: no answer in {} s; expected one", Join(command, " "),
                                    kCommandSeconds));
  if (finished.status != 0) {
    const std::string line = FirstLine(finished.output);
    return InvalidInput(fmt::format("this machine: {}: {}; expected an NVIDIA GPU and its driver",
                                    Join(command, " "),
                                    line.empty() ? fmt::format("exit status {}", finished.status) : line));
  }
  return std::move(finished.output);
}

// NCCL writes its dump when a communicator of all GPUs starts. Returns the exit status of the child: 3 no
// library, 4 no such function, 5 NCCL's error.
int StartNccl(const std::string& dump_file, int gpus) {
  using Init = int (*)(void**, int, const int*);
  setenv("NCCL_TOPO_DUMP_FILE", dump_file.c_str(), 1);
  unsetenv("NCCL_TOPO_DUMP_FILE_RANK");
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 3;
  const auto init = reinterpret_cast<Init>(dlsym(library, "ncclCommInitAll"));
  if (init == nullptr) return 4;
  std::vector<void*> communicators(static_cast<size_t>(gpus));
  return init(communicators.data(), gpus, nullptr) == 0 ? 0 : 5;
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "this-machine";
}

// Returns nothing if NCCL is missing or gave no dump. In the latter case `why` says what happened.
std::optional<Topology> ReadThroughNccl(int gpus, const LoadOptions& options, HostFacts& facts,
                                        std::string& why) {
  std::error_code no_folder;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(no_folder);
  if (no_folder) {
    why = "NCCL gave no dump: no temporary directory: " + no_folder.message();
    return std::nullopt;
  }
  std::string file = (folder / (HostName() + "-XXXXXX")).string();
  const int handle = mkstemp(file.data());
  if (handle < 0) return std::nullopt;
  close(handle);
  const Finished finished = RunInChild([&] { return StartNccl(file, gpus); }, kNcclSeconds);
  const StatusOr<std::string> text = ReadFile(file);
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (finished.status == 3) return std::nullopt;
  if (!text.ok() || text->empty()) {
    why = finished.status == -1 ? fmt::format("NCCL gave no dump in {} s", kNcclSeconds)
                                : fmt::format("NCCL gave no dump (exit status {})", finished.status);
    return std::nullopt;
  }
  StatusOr<Topology> topology = ReadNcclXml(*text, HostName() + ".xml", options, &facts);
  if (topology.ok()) return *std::move(topology);
  why = topology.status().message();
  return std::nullopt;
}

// Reads the first processor of /proc/cpuinfo.
CpuModel ReadCpu() {
  CpuModel cpu;
#if defined(__x86_64__)
  cpu.arch = "x86_64";
#elif defined(__aarch64__)
  cpu.arch = "arm64";
#elif defined(__powerpc64__)
  cpu.arch = "ppc64";
#endif
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.empty()) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view name = Trim(std::string_view(line).substr(0, colon));
    const std::string_view value = Trim(std::string_view(line).substr(colon + 1));
    const StatusOr<int64_t> number = ParseInteger(value, 0, INT32_MAX);
    if (name == "vendor_id") cpu.vendor = value;
    if (name == "cpu family" && number.ok()) cpu.family = static_cast<int32_t>(*number);
    if (name == "model" && number.ok()) cpu.model = static_cast<int32_t>(*number);
  }
  return cpu;
}

// Sums the rates of each NIC's ports: /sys/class/infiniband/NAME/ports/N/rate is "400 Gb/sec (4X NDR)".
std::map<std::string, int64_t> ReadNicRates() {
  namespace fs = std::filesystem;
  std::map<std::string, int64_t> rates;
  std::error_code error;
  for (fs::directory_iterator nic("/sys/class/infiniband", error), end; !error && nic != end;
       nic.increment(error)) {
    std::error_code no_ports;
    for (fs::directory_iterator port(nic->path() / "ports", no_ports), last; !no_ports && port != last;
         port.increment(no_ports)) {
      std::ifstream file(port->path() / "rate");
      std::string text;
      file >> text;
      const double gbit_per_s = ReadLeadingFloat(text).value;
      if (gbit_per_s > 0 && gbit_per_s < 1e6)
        rates[nic->path().filename().string()] += static_cast<int64_t>(gbit_per_s * 125e6);
    }
  }
  return rates;
}

StatusOr<Topology> ReadThroughNvidiaSmi(const LoadOptions& options) {
  NvidiaSmiTexts texts;
  texts.name = HostName();
  XCCL_ASSIGN_OR_RETURN(texts.matrix, NvidiaSmi({"topo", "-m"}));
  XCCL_ASSIGN_OR_RETURN(texts.gpus,
                        NvidiaSmi({"--query-gpu=index,compute_cap,pcie.link.gen.max,pcie.link.width.max",
                                   "--format=csv,noheader"}));
  texts.nic_bytes_per_s = ReadNicRates();
  texts.cpu = ReadCpu();
  return ReadNvidiaSmi(texts, options);
}

StatusOr<Topology> ReadUnmodified(const LoadOptions& options, bool use_nccl, HostFacts& facts) {
  XCCL_ASSIGN_OR_RETURN(const std::string list, NvidiaSmi({"-L"}));
  int gpus = 0;
  for (const std::string& line : Split(list, '\n')) gpus += line.starts_with("GPU ") ? 1 : 0;
  if (gpus == 0)
    return InvalidInput(fmt::format("this machine: nvidia-smi -L: {}; expected at least one GPU",
                                    list.empty() ? "lists no GPU" : FirstLine(list)));
  std::string why;
  if (use_nccl)
    if (std::optional<Topology> topology = ReadThroughNccl(gpus, options, facts, why))
      return *std::move(topology);
  XCCL_ASSIGN_OR_RETURN(Topology topology, ReadThroughNvidiaSmi(options));
  if (why.empty()) return topology;
  TopologySpec spec = topology.spec();
  spec.warnings.push_back("this machine: " + why + "; nvidia-smi topo -m was read instead");
  return Topology::Create(std::move(spec));
}

}  // namespace

StatusOr<Topology> ReadThisMachine(const LoadOptions& options, bool use_nccl) {
  HostFacts facts;
  XCCL_ASSIGN_OR_RETURN(Topology topology, ReadUnmodified(options, use_nccl, facts));
  return Modify(std::move(topology), options, facts);
}

}  // namespace xccl
