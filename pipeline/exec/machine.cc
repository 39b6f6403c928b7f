#include "pipeline/exec/machine.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "topologies/submachine.h"

namespace xccl {
namespace {

namespace fs = std::filesystem;

// Returns the text of a file of /proc or /sys; empty if it cannot be read.
std::string TextOf(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

// Returns the entries of a folder whose names begin with `start`, sorted; none if the folder is missing.
std::vector<fs::path> Entries(const fs::path& folder, const std::string& start = "") {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(start)) found.push_back(entry->path());
  std::ranges::sort(found);
  return found;
}

std::string OnPath(const Environment& environment, const std::string& program) {
  for (const std::string& folder : Split(environment("PATH").value_or(""), ':'))
    if (std::string path = fmt::format("{}/{}", folder, program);
        !folder.empty() && access(path.c_str(), X_OK) == 0)
      return path;
  return "";
}

}  // namespace

// Bandwidths and latencies are close to what `tune` measures between processes on current CPUs
// (tools/net/shapes.py). The network has 10 Gbit/s.
std::string XmlOfCpuRanks(const JobShape& shape) {
  const std::string source = "assumed for CPU ranks; exec --measure measures";
  std::string host = fmt::format(
      "<gpu count=\"{}\"/><switch id=\"memory\"/><link from=\"gpu:*\" to=\"memory\" bandwidth=\"3GB/s\" "
      "latency=\"5us\"/>",
      shape.ranks_per_host);
  if (shape.hosts == 1)
    return fmt::format("<topology name=\"cpu-ranks\" source=\"{}\"><host name=\"h0\">{}</host></topology>\n",
                       source, host);
  return fmt::format(
      "<topology name=\"cpu-ranks\" source=\"{}\"><cluster hosts=\"{}\">{}<nic id=\"nic\"/><link "
      "from=\"gpu:*\" to=\"nic\" bandwidth=\"3GB/s\" latency=\"1us\" overhead=\"10us\"/><fabric "
      "bandwidth=\"1.25GB/s\" latency=\"5us\"/></cluster></topology>\n",
      source, shape.hosts, host);
}

StatusOr<int32_t> HostsToAdd(const Topology& loaded, const JobShape& shape) {
  if (loaded.num_ranks() == shape.ranks()) return 1;
  if (loaded.num_hosts() == 1 && (loaded.num_ranks() == shape.ranks_per_host || shape.ranks_per_host == 1))
    return shape.hosts;
  return InvalidInput(fmt::format("{}: {} ranks; expected those of the job, {} on each of {} hosts",
                                  loaded.name(), loaded.num_ranks(), shape.ranks_per_host, shape.hosts));
}

StatusOr<Topology> GpusOfJob(const Topology& machine, const JobShape& shape, const std::string& name) {
  const int32_t gpus = machine.num_ranks() / shape.hosts;
  if (shape.ranks_per_host > gpus)
    return InvalidInput(fmt::format("{} GPUs on this host, and {} ranks; expected a GPU for each rank", gpus,
                                    shape.ranks_per_host));
  TopologySpec spec = machine.spec();
  if (shape.ranks_per_host > 1 && shape.ranks_per_host < gpus) {
    std::vector<Rank> used;
    for (int32_t host = 0; host < shape.hosts; ++host)
      for (int32_t i = 0; i < shape.ranks_per_host; ++i) used.push_back(Rank(host * gpus + i));
    spec = MembersAlone(machine, used).topology.spec();
  }
  spec.name = name;
  return Topology::Create(std::move(spec));
}

std::optional<std::string> FingerprintOfGpus(const Environment& environment) {
  const std::string tool = OnPath(environment, "nvidia-smi");
  if (tool.empty()) return std::nullopt;
  std::string text = tool + "\n" + TextOf("/proc/sys/kernel/random/boot_id") +
                     TextOf("/proc/sys/kernel/hostname") + TextOf("/proc/driver/nvidia/version");
  for (const fs::path& gpu : Entries("/proc/driver/nvidia/gpus")) text += gpu.string() + "\n";
  for (const fs::path& device : Entries("/dev", "nvidia")) text += device.string() + "\n";
  for (const fs::path& nic : Entries("/sys/class/infiniband"))
    for (const fs::path& port : Entries(nic / "ports"))
      text += port.string() + " " + TextOf(port / "rate") + TextOf(port / "state");
  for (const char* const name : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NCCL_TOPO_FILE"})
    text += fmt::format("{}={}\n", name, environment(name).value_or(""));
  return text;
}

}  // namespace xccl
