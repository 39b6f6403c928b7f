// For each GPU, links are counted by target, then turned into bandwidth. The ranks that share a GPU share its
// links, which one of them, some or all may list. Where MPS has divided the GPU into parts, NCCL 2.30 gives
// each part an equal share of the NVLinks, and all of them one C2C.
#include "topologies/nccl/nccl_gpu_links.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/units.h"
#include "topologies/nccl/nccl_constants.h"

namespace xccl {
namespace {

// Targets that are no item.
constexpr int32_t kToSwitch = -1, kToHiddenSwitch = -2, kToCpu = -3;

class GpuLinkReader {
 public:
  GpuLinkReader(NcclSystem& system, const std::vector<int32_t>& gpus) : system_(system), gpus_(gpus) {
    links_.buses = BusIndex(system);
    for (int32_t item : links_.buses.repeated())
      system.Warn(system[item].offset, fmt::format("a second device {}", system[item].busid));
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
      if (first || system_[gpu].part)
        AddLinksOf(gpu, shared < 0 || system_[gpu].part ? std::vector<int32_t>{gpu} : RanksOf(shared));
    }
    WarnOfMissingLinks();
    WarnOfFewerLinks();
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

  // The item of the GPU that a link leads to, or one of the values above. Absent where the link is to be left
  // out, mostly with a warning.
  std::optional<int32_t> TargetOf(int32_t gpu, const NcclEdge& edge) {
    if (edge.target_class.starts_with("0x068001")) return kToCpu;
    const bool hidden = edge.target.starts_with("fffffff:ff:ff");
    int32_t known = links_.buses.Find(system_, gpu, edge.target);
    while (known >= 0 && system_[known].removed && system_[known].replaced_by >= 0)
      known = system_[known].replaced_by;
    if (known >= 0 && system_[known].kind == NcclItemKind::kGpu && SharedGpuOf(known) >= 0)
      known = SharedGpuOf(known);
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
      if (known == gpu || !system_[gpu].amd)  // the partitions of an AMD device meet inside it
        system_.Warn(edge.offset, "a link of a GPU to itself; left out");
      return std::nullopt;
    }
    if (system_[known].removed) {
      system_.Warn(edge.offset, "a link to a GPU that was left out");
      return std::nullopt;
    }
    return known;
  }

  // The links of a GPU that each of its ranks lists, or some of them: the most to each target. The links to a
  // device count once, whichever of its partitions they name.
  std::map<int32_t, int64_t> CountsOf(const std::vector<int32_t>& ranks, std::optional<int64_t> most) {
    std::map<int32_t, int64_t> counts;
    int full = 0;
    for (int32_t rank : ranks) {
      std::map<int32_t, std::map<std::string, int64_t>> listed;  // by target and bus id
      for (const NcclEdge& edge : system_[rank].edges) {
        if (edge.kind != NcclEdge::Kind::kGpuLink) continue;
        const std::optional<int32_t> target = TargetOf(rank, edge);
        if (!target) continue;
        listed[*target][edge.target] += edge.count;
        if (*target >= 0 && most && *most > 0 && edge.count >= *most) ++full;
      }
      for (const auto& [target, by_busid] : listed) {
        int64_t sum = 0, largest = 0;
        for (const auto& [busid, count] : by_busid) {
          sum += count;
          largest = std::max(largest, count);
        }
        const bool once = target >= 0 && system_[target].shared_gpu;
        counts[target] = std::max(counts[target], once ? largest : sum);
      }
    }
    if (full < 2) return counts;
    // A GPU with all its links on each of several lines sees the other GPUs through an NVSwitch.
    for (auto at = counts.begin(); at != counts.end();) {
      if (at->first >= 0) counts[kToSwitch] += at->second;
      at = at->first >= 0 ? counts.erase(at) : std::next(at);
    }
    return counts;
  }

  // `ranks` share the GPU, or are the one rank of it.
  void AddLinksOf(int32_t gpu, const std::vector<int32_t>& ranks) {
    const auto lists_links = [&](int32_t rank) {
      return std::ranges::any_of(system_[rank].edges,
                                 [](const NcclEdge& edge) { return edge.kind == NcclEdge::Kind::kGpuLink; });
    };
    const auto lister = std::ranges::find_if(ranks, lists_links);
    if (lister == ranks.end()) return;
    const GpuArch& arch = *system_[*lister].arch;
    const std::map<int32_t, int64_t> counts = CountsOf(ranks, NvlinksOf(arch));
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
          links_.switches[target == kToHiddenSwitch ? std::string(kHiddenNvswitch)
                                                    : "host " + system_[CpuOf(end)].host_hash];
      nvswitch.ports[end] += bandwidth;
      nvswitch.nvls = nvswitch.nvls && HasNvls(arch) && !system_[end].part;  // parts: not in NCCL 2.30
    }
  }

  void WarnOfMissingLinks() {
    std::set<int32_t> linked;
    for (const auto& [ends, bandwidth] : links_.between) linked.insert({ends.first, ends.second});
    for (const auto& [key, nvswitch] : links_.switches)
      for (const auto& [item, bandwidth] : nvswitch.ports) linked.insert(item);
    std::set<std::string> archs;  // the architectures of linked GPUs
    std::vector<int32_t> lacking;
    for (int32_t gpu : gpus_) {
      if (!system_[gpu].arch) continue;
      if (linked.contains(gpu) || linked.contains(SharedGpuOf(gpu)))
        archs.insert(ToString(*system_[gpu].arch));
      else if (UsuallyHasGpuLinks(*system_[gpu].arch) || !IsKnownArch(*system_[gpu].arch))
        lacking.push_back(gpu);
    }
    if (gpus_.size() < 2 || !system_.lists_gpus) return;
    for (int32_t gpu : lacking) {
      const GpuArch& arch = *system_[gpu].arch;
      const std::string_view link = arch.sm ? "NVLink" : "xGMI";
      if (archs.contains(ToString(arch)))
        system_.Warn(system_[gpu].offset,
                     fmt::format("a GPU without {}, while others of its kind have it", link));
      else if (gpu == lacking.front() && UsuallyHasGpuLinks(arch) && !OneGpuPerHost())
        system_.Warn(
            system_[gpu].offset,
            fmt::format("no {} between {} GPUs, which {}; only {} them", link, ToString(arch),
                        links_.to_cpu.empty() ? "have it unless they are PCIe cards" : "usually have it",
                        links_.to_cpu.empty() ? "PCIe joins" : "PCIe and their CPUs join"));
    }
  }

  // Warns of GPUs with less bandwidth to an NVSwitch than other GPUs of their architecture. Between GPUs the
  // numbers of links may differ by design.
  void WarnOfFewerLinks() {
    for (const auto& [key, nvswitch] : links_.switches) {
      std::map<std::string, int64_t> most;  // by architecture
      const auto kind = [&](int32_t item) {
        return system_[item].arch && !system_[item].part ? ToString(*system_[item].arch) : std::string();
      };
      for (const auto& [item, bandwidth] : nvswitch.ports)
        most[kind(item)] = std::max(most[kind(item)], bandwidth);
      for (const auto& [item, bandwidth] : nvswitch.ports)
        if (!kind(item).empty() && bandwidth < most[kind(item)])
          system_.Warn(system_[item].offset,
                       fmt::format("{} to an NVSwitch, to which others of its kind have {}",
                                   FormatBandwidth(bandwidth), FormatBandwidth(most[kind(item)])));
    }
  }

  // GH200 hosts with one GPU each have no NVLink where no NVSwitch joins them.
  bool OneGpuPerHost() const {
    std::set<std::string> hosts;
    return std::ranges::all_of(
        gpus_, [&](int32_t gpu) { return hosts.insert(system_[CpuOf(gpu)].host_hash).second; });
  }

  NcclSystem& system_;
  const std::vector<int32_t>& gpus_;
  NcclGpuLinks links_;
};

}  // namespace

NcclGpuLinks ReadNcclGpuLinks(NcclSystem& system, const std::vector<int32_t>& gpus) {
  return GpuLinkReader(system, gpus).Read();
}

}  // namespace xccl
