// The body is read as words, as the simulators do, so that a list of switches may be empty or span lines.
#include "topologies/peers/simai.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/networks.h"
#include "topologies/nccl/nccl_constants.h"
#include "topologies/peers/numbers.h"

namespace xccl {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr size_t kWordsOfLink = 5;  // src dst rate latency error_rate

struct GpuType {
  std::string_view name, arch;
};
constexpr GpuType kGpuTypes[] = {{"V100", "sm70"}, {"A100", "sm80"}, {"A800", "sm80"},  {"H100", "sm90"},
                                 {"H800", "sm90"}, {"H20", "sm90"},  {"H200", "sm90"},  {"GH200", "sm90"},
                                 {"L40S", "sm89"}, {"L20", "sm89"},  {"B200", "sm100"}, {"GB200", "sm100"}};

bool IsNumber(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

// Takes the first line off the text.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool IsHead(std::span<const std::string_view> words) {
  const bool simai = words.size() == 6;
  return (simai || words.size() == 3) && std::ranges::all_of(words.first(simai ? 5 : 3), IsNumber);
}

// Its counts; the fields that the short form lacks are absent.
struct Head {
  int64_t nodes = 0, switches = 0, links = 0;
  std::optional<int64_t> gpus_per_server, nvswitches;
  std::string_view gpu_type;
};

class SimaiReader {
 public:
  SimaiReader(std::string_view text, std::string_view file, const LoadOptions& options)
      : text_(text), rest_(text), file_(file), arch_flag_(options.gpu_arch) {
    spec_.name = std::filesystem::path(file).stem().string();
  }

  StatusOr<Topology> Read() {
    XCCL_RETURN_IF_ERROR(ReadHead());
    XCCL_RETURN_IF_ERROR(ReadSwitches());
    XCCL_RETURN_IF_ERROR(ReadLinks());
    AddNodes();
    for (const Cable& cable : cables_)
      AddCable(nodes_[cable.a], nodes_[cable.b], {cable.bandwidth, cable.latency}, spec_);
    return Topology::Create(std::move(spec_));
  }

 private:
  struct Cable {
    size_t a, b;
    int64_t bandwidth, latency;
  };

  Location Here() const { return LocationOfOffset(file_, text_, word_); }
  Status Bad(std::string_view message) const { return InvalidAt(Here(), message); }
  std::string_view Word() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
    word_ = text_.size() - rest_.size();
    const std::string_view word = rest_.substr(0, rest_.find_first_of(kBlanks));
    rest_.remove_prefix(word.size());
    return word;
  }
  StatusOr<int64_t> Number(std::string_view what, int64_t high) {
    const std::string_view word = Word();
    if (word.empty()) return Bad(fmt::format("the file ends; expected {}", what));
    StatusOr<int64_t> number = ParseInteger(word, 0, high);
    if (!number.ok()) return Bad(fmt::format("{}: {}", what, number.status().message()));
    return number;
  }

  Status ReadHead() {
    std::string_view text = rest_.substr(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
    const bool simai = WordsOf(TakeLine(text)).size() == 6;
    XCCL_ASSIGN_OR_RETURN(head_.nodes, Number("the number of nodes", kMaxNodes));
    if (simai) {
      XCCL_ASSIGN_OR_RETURN(head_.gpus_per_server, Number("the number of GPUs of a server", kMaxNodes));
      XCCL_ASSIGN_OR_RETURN(head_.nvswitches, Number("the number of NVSwitches", kMaxNodes));
      if (*head_.gpus_per_server == 0) return Bad("servers of 0 GPUs; expected at least 1");
    }
    XCCL_ASSIGN_OR_RETURN(head_.switches, Number("the number of switches", kMaxNodes));
    head_.switches += head_.nvswitches.value_or(0);
    XCCL_ASSIGN_OR_RETURN(head_.links, Number("the number of links", kMaxLinks / 2));
    if (simai) head_.gpu_type = Word();
    if (head_.switches >= head_.nodes)
      return Bad(
          fmt::format("{} of {} nodes are switches; expected at least one GPU", head_.switches, head_.nodes));
    return OkStatus();
  }

  Status ReadSwitches() {
    place_of_switch_.resize(static_cast<size_t>(head_.nodes));
    for (int64_t s = 0; s < head_.switches; ++s) {
      XCCL_ASSIGN_OR_RETURN(const int64_t id, Number("the id of a switch", head_.nodes - 1));
      std::optional<int64_t>& place = place_of_switch_[static_cast<size_t>(id)];
      if (place) return Bad(fmt::format("switch {} is listed twice", id));
      place = s;
    }
    return OkStatus();
  }

  // As many as the first line says. Simulators read no further, and files have notes there.
  Status ReadLinks() {
    bool errors = false;
    for (int64_t l = 0; l < head_.links; ++l) {
      const std::string_view before = rest_;
      if (Word().empty())
        return Bad(
            fmt::format("the file ends after {}; its first line says {}", Counted(l, "link"), head_.links));
      rest_ = before;
      Cable cable;
      XCCL_ASSIGN_OR_RETURN(const int64_t a, Number("the source of a link", head_.nodes - 1));
      XCCL_ASSIGN_OR_RETURN(const int64_t b, Number("the destination of a link", head_.nodes - 1));
      if (a == b) return Bad(fmt::format("a link from {} to itself; expected another end", a));
      cable.a = static_cast<size_t>(a), cable.b = static_cast<size_t>(b);
      for (const bool rate : {true, false}) {
        const StatusOr<int64_t> value = rate ? ParsePeerRate(Word()) : ParsePeerTime(Word());
        if (!value.ok()) return Bad(fmt::format("link {} to {}: {}", a, b, value.status().message()));
        (rate ? cable.bandwidth : cable.latency) = *value;
      }
      const std::string_view error_rate = Word();
      if (error_rate.empty()) return Bad("the file ends; expected the error rate of a link");
      errors |= error_rate.find_first_not_of("0.") != std::string_view::npos;
      cables_.push_back(cable);
    }
    if (!Word().empty())
      spec_.warnings.push_back(fmt::format("{}: {} in the first line; what stands below them is left out",
                                           ToString(Here()), Counted(head_.links, "link")));
    if (errors) spec_.warnings.push_back(fmt::format("{}: error rates of links are left out", file_));
    KeepOneOfTwoWays();
    return OkStatus();
  }

  // Simulators differ in whether a line is a cable or one direction of it. Where each line has its reverse,
  // with the same numbers, lines are directions.
  void KeepOneOfTwoWays() {
    std::map<std::array<int64_t, 4>, int64_t> ways;  // lines there minus lines back
    std::vector<Cable> ahead;
    for (const Cable& cable : cables_) {
      const bool forward = cable.a < cable.b;
      const auto [low, high] = std::minmax(cable.a, cable.b);
      ways[{static_cast<int64_t>(low), static_cast<int64_t>(high), cable.bandwidth, cable.latency}] +=
          forward ? 1 : -1;
      if (forward) ahead.push_back(cable);
    }
    if (std::ranges::any_of(ways, [](const auto& way) { return way.second != 0; })) return;
    cables_ = std::move(ahead);
    if (!cables_.empty())
      spec_.warnings.push_back(
          fmt::format("{}: each link is there in both directions; two lines are read as one cable", file_));
  }

  // The host of all neighbours of a switch, if all are GPUs of one host.
  std::vector<std::optional<HostId>> HostsOfSwitches() const {
    std::vector<std::optional<HostId>> hosts(nodes_.size());
    std::vector<bool> elsewhere(nodes_.size());
    const auto see = [&](size_t node, size_t neighbour) {
      const std::optional<HostId> host = host_of_gpu_[neighbour];
      if (!host || (hosts[node] && hosts[node] != host)) elsewhere[node] = true;
      if (host) hosts[node] = host;
    };
    for (const Cable& cable : cables_) {
      see(cable.a, cable.b);
      see(cable.b, cable.a);
    }
    for (size_t n = 0; n < hosts.size(); ++n)
      if (elsewhere[n]) hosts[n].reset();
    return hosts;
  }

  // GPUs first, so that ranks are in the order of ids; then the switches, in theirs.
  void AddNodes() {
    const std::optional<GpuArch> arch = SetArch();
    const bool nvls = arch && HasNvls(*arch);
    nodes_.resize(static_cast<size_t>(head_.nodes));
    host_of_gpu_.resize(nodes_.size());
    const int64_t per_host = head_.gpus_per_server.value_or(1);
    int64_t gpus = 0;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (place_of_switch_[n]) continue;
      if (gpus % per_host == 0) spec_.hosts.push_back(Host{fmt::format("h{}", gpus / per_host)});
      host_of_gpu_[n] = HostId(gpus / per_host);
      nodes_[n] = AddNode(NodeKind::kGpu, std::to_string(gpus % per_host), host_of_gpu_[n], spec_);
      ++gpus;
    }
    if (gpus % per_host != 0)
      spec_.warnings.push_back(fmt::format("{}: {} GPUs, {} to a server: the last server has {}", file_, gpus,
                                           per_host, gpus % per_host));
    const std::vector<std::optional<HostId>> hosts = HostsOfSwitches();
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!place_of_switch_[n]) continue;
      const bool nvswitch = *place_of_switch_[n] < head_.nvswitches.value_or(0);
      nodes_[n] = AddNode(NodeKind::kSwitch, fmt::format("{}{}", nvswitch ? "nvswitch" : "switch", n),
                          nvswitch ? hosts[n] : std::nullopt, spec_, nvswitch && nvls, nvswitch && nvls);
    }
    spec_.source = head_.gpus_per_server ? "SimAI topology file; rates and latencies as it states them"
                                         : "ns-3 topology file; rates and latencies as it states them";
  }

  std::optional<GpuArch> SetArch() {
    for (const GpuType& type : kGpuTypes)
      if (type.name == head_.gpu_type) spec_.gpu_arch = type.arch;
    if (!spec_.gpu_arch.empty()) return ParseGpuArch(spec_.gpu_arch).value();
    if (arch_flag_) {
      const StatusOr<GpuArch> arch = ParseGpuArch(*arch_flag_);  // its caller says what is wrong
      return arch.ok() ? std::optional(*arch) : std::nullopt;
    }
    if (head_.gpus_per_server)
      spec_.warnings.push_back(
          fmt::format("{}:1: the architecture of GPU type {} is not known; hint: --gpu-arch=sm90", file_,
                      Shortened(head_.gpu_type)));
    return std::nullopt;
  }

  std::string_view text_, rest_;
  std::string_view file_;
  std::optional<std::string> arch_flag_;
  size_t word_ = 0;  // offset of the last word
  Head head_;
  std::vector<std::optional<int64_t>> place_of_switch_;  // by node: its place in the list of switches
  std::vector<Cable> cables_;
  std::vector<NodeId> nodes_;
  std::vector<std::optional<HostId>> host_of_gpu_;
  TopologySpec spec_;
};

}  // namespace

bool IsSimai(std::string_view text) {
  bool head = false;
  while (!text.empty()) {
    const std::vector<std::string_view> words = WordsOf(TakeLine(text));
    if (words.empty()) continue;
    if (!head) {
      if (!IsHead(words)) return false;
      head = true;
      continue;
    }
    if (words.size() == kWordsOfLink && IsNumber(words[0]) && IsNumber(words[1]) && !IsNumber(words[2]))
      return true;
    if (!std::ranges::all_of(words, IsNumber)) return false;
  }
  return false;
}

StatusOr<Topology> ReadSimai(std::string_view text, std::string_view file, const LoadOptions& options) {
  return SimaiReader(text, file, options).Read();
}

}  // namespace xccl
