// For each GPU, links are counted by target, then turned into bandwidth. The ranks that share a GPU share its
// links. Where MPS has divided the GPU into parts, NCCL 2.30 gives each part an equal share of the NVLinks,
// and all of them one C2C.
#include "topologies/nccl/nccl_gpu_links.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "topologies/nccl/nccl_constants.h"

namespace xccl {
namespace {

// The key that NCCL compares busids by: their hexadecimal digits alone, without leading zeros.
std::string BusKey(std::string_view busid) {
  std::string key;
  for (char c : busid)
    if (c != ':' && c != '.' && (c != '0' || !key.empty())) key += c;
  return key;
}

// Targets that are no item.
constexpr int32_t kToSwitch = -1, kToHiddenSwitch = -2, kToCpu = -3;

class GpuLinkReader {
 public:
  GpuLinkReader(NcclSystem& system, const std::vector<int32_t>& gpus) : system_(system), gpus_(gpus) {
    links_.buses = BusIndex(system);
  }

  NcclGpuLinks Read() {
    for (int32_t gpu : gpus_) {
      // Ranks that share a GPU list the same links; parts list them, too, and have a share each.
      const int32_t shared = SharedGpuOf(gpu);
      const bool first = shared < 0 || RanksOf(shared).front() == gpu;
      if (first)
        for (const NcclEdge& edge : system_[gpu].edges)
          if (edge.kind == NcclEdge::Kind::kC2c)
            links_.to_cpu[shared < 0 ? gpu : shared] += edge.bandwidth_bytes_per_s;
      if (first || system_[gpu].part) AddLinksOf(gpu);
    }
    WarnOfMissingLinks();
    return std::move(links_);
  }

 private:
  int32_t SharedGpuOf(int32_t gpu) const {
    const int32_t parent = system_[gpu].parent;
    return parent >= 0 && system_[parent].shared_gpu ? parent : -1;
  }
  int32_t CpuOf(int32_t item) const {
    while (system_[item].parent >= 0) item = system_[item].parent;
    return item;
  }
  std::vector<int32_t> RanksOf(int32_t shared) const {
    std::vector<int32_t> ranks;
    for (int32_t i = shared + 1; i < system_.size(); ++i)
      if (!system_[i].removed && system_[i].parent == shared) ranks.push_back(i);
    return ranks;
  }
  // The items where the NVLinks of a GPU end: its parts, else the GPU.
  std::vector<int32_t> EndsOf(int32_t gpu) const {
    if (!system_[gpu].shared_gpu) return {gpu};
    std::vector<int32_t> ranks = RanksOf(gpu);
    return system_[ranks.front()].part ? ranks : std::vector<int32_t>{gpu};
  }

  // What a link leads to: a GPU's item, or one of the values above. Absent, with a warning: nothing.
  std::optional<int32_t> TargetOf(int32_t gpu, const NcclEdge& edge) {
    if (edge.target_class.starts_with("0x068001")) return kToCpu;
    const bool hidden = edge.target.starts_with("fffffff:ff:ff");
    int32_t known = links_.buses.Find(system_, gpu, edge.target);
    while (known >= 0 && system_[known].removed && system_[known].replaced_by >= 0)
      known = system_[known].replaced_by;
    if (edge.target_class.starts_with("0x0680") || hidden ||
        (known >= 0 && system_[known].pci_class.starts_with("0x0680")))
      return hidden && system_[CpuOf(gpu)].cpu.arch == "arm64" ? kToHiddenSwitch : kToSwitch;
    if (known < 0 || (system_[known].kind != NcclItemKind::kGpu && !system_[known].shared_gpu)) {
      system_.Warn(edge.offset,
                   fmt::format("a link to {}, which is neither a GPU of this file nor an NVSwitch; left out",
                               edge.target));
      return std::nullopt;
    }
    if (known == gpu || known == SharedGpuOf(gpu)) {
      system_.Warn(edge.offset, "a link of a GPU to itself; left out");
      return std::nullopt;
    }
    if (system_[known].removed) {
      system_.Warn(edge.offset, "a link to a GPU that was left out");
      return std::nullopt;
    }
    return known;
  }

  // The number of links to each target. A GPU with all its links on each of several lines sees the other GPUs
  // through an NVSwitch.
  std::map<int32_t, int64_t> CountsOf(int32_t gpu) {
    const std::optional<int64_t> most = NvlinksOf(*system_[gpu].arch);
    std::map<int32_t, int64_t> counts;
    int full = 0;
    for (const NcclEdge& edge : system_[gpu].edges) {
      if (edge.kind != NcclEdge::Kind::kGpuLink) continue;
      const std::optional<int32_t> target = TargetOf(gpu, edge);
      if (!target) continue;
      counts[*target] += edge.count;
      if (*target >= 0 && most && *most > 0 && edge.count >= *most) ++full;
    }
    if (full < 2) return counts;
    for (auto at = counts.begin(); at != counts.end();) {
      if (at->first >= 0) counts[kToSwitch] += at->second;
      at = at->first >= 0 ? counts.erase(at) : std::next(at);
    }
    return counts;
  }

  void AddLinksOf(int32_t gpu) {
    const bool any = std::ranges::any_of(
        system_[gpu].edges, [](const NcclEdge& edge) { return edge.kind == NcclEdge::Kind::kGpuLink; });
    if (!any) return;
    const GpuArch& arch = *system_[gpu].arch;
    const std::map<int32_t, int64_t> counts = CountsOf(gpu);
    int64_t total = 0;
    for (const auto& [target, count] : counts) total += count;
    const int64_t most = std::min(total, NvlinksOf(arch).value_or(total));
    if (most < total)
      system_.Warn(system_[gpu].offset,
                   fmt::format("{} NVLinks, but an {} GPU has {}; {}", total, ToString(arch),
                               most == 0 ? "none" : std::to_string(most),
                               most == 0 ? "left out" : fmt::format("counted as {} in all", most)));
    if (most == 0) return;
    const int32_t shared = SharedGpuOf(gpu);
    const bool part = shared >= 0 && system_[gpu].part;
    const int32_t end = shared >= 0 && !part ? shared : gpu;
    const int64_t shares = part ? static_cast<int64_t>(RanksOf(shared).size()) : 1;
    for (const auto& [target, count] : counts) {
      const __int128 bandwidth =
          static_cast<__int128>(count) * GpuLinkBytesPerS(arch) * most / total / shares;
      AddLinks(end, target, static_cast<int64_t>(bandwidth), arch);
    }
  }

  void AddLinks(int32_t end, int32_t target, int64_t bandwidth, const GpuArch& arch) {
    if (target == kToCpu) {
      links_.to_cpu[end] += bandwidth;
    } else if (target >= 0) {
      const std::vector<int32_t> ends = EndsOf(target);
      for (int32_t other : ends)
        links_.between[{end, other}] += bandwidth / static_cast<int64_t>(ends.size());
    } else {
      NcclGpuLinks::Nvswitch& nvswitch =
          links_.switches[target == kToHiddenSwitch ? "*" : "host " + system_[CpuOf(end)].host_hash];
      nvswitch.ports[end] += bandwidth;
      nvswitch.nvls = nvswitch.nvls && HasNvls(arch) && !system_[end].part;  // parts: not in NCCL 2.30
    }
  }

  void WarnOfMissingLinks() {
    std::set<int32_t> linked;
    for (const auto& [ends, bandwidth] : links_.between) linked.insert({ends.first, ends.second});
    for (const auto& [item, bandwidth] : links_.to_cpu) linked.insert(item);
    for (const auto& [key, nvswitch] : links_.switches)
      for (const auto& [item, bandwidth] : nvswitch.ports) linked.insert(item);
    std::set<std::string> archs;  // of linked GPUs
    std::vector<int32_t> lacking;
    for (int32_t gpu : gpus_) {
      if (!system_[gpu].arch) continue;
      if (linked.contains(gpu) || linked.contains(SharedGpuOf(gpu)))
        archs.insert(ToString(*system_[gpu].arch));
      else if (UsuallyHasGpuLinks(*system_[gpu].arch))
        lacking.push_back(gpu);
    }
    if (gpus_.size() < 2 || !system_.lists_gpus) return;
    for (int32_t gpu : lacking) {
      const GpuArch& arch = *system_[gpu].arch;
      const std::string_view link = arch.sm ? "NVLink" : "xGMI";
      if (archs.contains(ToString(arch)))
        system_.Warn(system_[gpu].offset,
                     fmt::format("a GPU without {}, while others of its kind have it", link));
      else if (gpu == lacking.front())
        system_.Warn(system_[gpu].offset,
                     fmt::format("no {} between {} GPUs, which have it unless they are PCIe cards; only PCIe "
                                 "joins them",
                                 link, ToString(arch)));
    }
  }

  NcclSystem& system_;
  const std::vector<int32_t>& gpus_;
  NcclGpuLinks links_;
};

}  // namespace

BusIndex::BusIndex(NcclSystem& system) {
  for (int32_t i = 0; i < system.size(); ++i) {
    const NcclItem& item = system[i];
    cpu_of_.push_back(item.parent < 0 ? i : cpu_of_[item.parent]);
    if (item.busid.empty()) continue;
    if (!item_.try_emplace({system[cpu_of_[i]].host_hash, BusKey(item.busid)}, i).second)
      system.Warn(item.offset, fmt::format("a second device {}", item.busid));
  }
}

int32_t BusIndex::Find(const NcclSystem& system, int32_t from, std::string_view busid) const {
  const auto found = item_.find({system.items[cpu_of_[from]].host_hash, BusKey(busid)});
  return found == item_.end() ? -1 : found->second;
}

NcclGpuLinks ReadNcclGpuLinks(NcclSystem& system, const std::vector<int32_t>& gpus) {
  return GpuLinkReader(system, gpus).Read();
}

}  // namespace xccl
