// The NPUs of a group are `stride` numbers apart, where the stride is the product of the counts of the
// dimensions before. Cost: linear in the links.
#include "topologies/peers/astra_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/strings.h"
#include "base/units.h"
#include "base/yaml/yaml.h"
#include "topologies/families/networks.h"
#include "topologies/peers/numbers.h"

namespace xccl {
namespace {

constexpr double kGb = 1 << 30;
constexpr std::array<std::string_view, 4> kKeys = {"topology", "npus_count", "bandwidth", "latency"};
enum class Shape : uint8_t { kRing, kFullyConnected, kSwitch };
constexpr std::array<std::string_view, 3> kShapes = {"Ring", "FullyConnected", "Switch"};

struct Dimension {
  Shape shape = Shape::kRing;
  int64_t count = 0;
  LinkNumbers link;
};

class AstraSimReader {
 public:
  explicit AstraSimReader(std::string_view file) : file_(file) {
    spec_.name = std::filesystem::path(file).stem().string();
    spec_.source = "a network file of ASTRA-sim, whose GB are 2^30 bytes";
  }

  StatusOr<Topology> Read(std::string_view text, const LoadOptions& options) {
    XCCL_ASSIGN_OR_RETURN(flag_, ReadLinkFlag(options));
    XCCL_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, file_));
    XCCL_RETURN_IF_ERROR(ReadDimensions(root));
    XCCL_RETURN_IF_ERROR(CheckSizes());
    AddNpus();
    int64_t stride = 1;
    for (size_t d = 0; d < dimensions_.size(); ++d) {
      AddDimension(d, stride);
      stride *= dimensions_[d].count;
    }
    StatusOr<Topology> made = Topology::Create(std::move(spec_));
    if (!made.ok()) return Annotate(made.status(), file_);
    return made;
  }

 private:
  Status Error(const YamlNode& node, std::string_view text) const {
    return InvalidAt(Location{file_, node.line, node.column}, text);
  }

  Status ReadDimensions(const YamlNode& root) {
    std::array<const YamlNode*, 4> lists;
    for (size_t k = 0; k < kKeys.size(); ++k) {
      lists[k] = root.Find(kKeys[k]);
      if (lists[k] == nullptr)
        return Error(root, fmt::format("no {}; expected {}", kKeys[k], fmt::join(kKeys, ", ")));
      if (lists[k]->kind != YamlNode::Kind::kList || lists[k]->items.empty())
        return Error(*lists[k], fmt::format("{} that is no list; expected an entry a dimension", kKeys[k]));
      if (lists[k]->items.size() != lists[0]->items.size())
        return Error(*lists[k],
                     fmt::format("{} of {}; expected {}, as topology has", kKeys[k],
                                 Counted(std::ssize(lists[k]->items), "dimension"), lists[0]->items.size()));
    }
    for (size_t i = 0; i + 1 < root.items.size(); i += 2)
      if (std::ranges::find(kKeys, root.items[i].text) == kKeys.end())
        spec_.warnings.push_back(
            fmt::format("{}:{}: {} is not read", file_, root.items[i].line, Cleaned(root.items[i].text, 80)));
    for (size_t d = 0; d < lists[0]->items.size(); ++d) {
      Dimension& made = dimensions_.emplace_back();
      const YamlNode& shape = lists[0]->items[d];
      const auto found = std::ranges::find(kShapes, shape.text);
      if (found == kShapes.end())
        return Error(shape, fmt::format("topology '{}'; expected {}{}", Cleaned(shape.text, 80),
                                        fmt::join(kShapes, ", "), DidYouMean(shape.text, kShapes)));
      made.shape = static_cast<Shape>(found - kShapes.begin());
      const StatusOr<int64_t> count = ParseInteger(lists[1]->items[d].text, 2, kMaxNodes);
      if (!count.ok())
        return Error(lists[1]->items[d], fmt::format("npus_count: {}", count.status().message()));
      made.count = *count;
      XCCL_ASSIGN_OR_RETURN(made.link.bandwidth_bytes_per_s,
                            Number(lists[2]->items[d], RateOf, kGb, flag_.bandwidth_bytes_per_s));
      XCCL_ASSIGN_OR_RETURN(made.link.latency_ps,
                            Number(lists[3]->items[d], TimeOf, kPsPerNs, flag_.latency_ps));
    }
    return OkStatus();
  }

  // The number of an entry; where it is none, as in files with "tbd", what --link says.
  StatusOr<int64_t> Number(const YamlNode& node, StatusOr<int64_t> (*convert)(double, double), double unit,
                           const std::optional<int64_t>& flag) const {
    double number = 0;
    const char* const end = node.text.data() + node.text.size();
    const auto [stop, error] = std::from_chars(node.text.data(), end, number);
    if (error != std::errc() || stop != end) {
      if (flag) return *flag;
      return Error(node, fmt::format("'{}'; expected a number; hint: --link=bandwidth=50GB/s,latency=500ns",
                                     Cleaned(node.text, 80)));
    }
    StatusOr<int64_t> value = convert(number, unit);
    if (!value.ok()) return Error(node, value.status().message());
    return value;
  }

  // All products stay far below the limits of int64_t, since the number of NPUs is checked at each step.
  Status CheckSizes() {
    for (const Dimension& dimension : dimensions_) {
      npus_ *= dimension.count;
      XCCL_RETURN_IF_ERROR(Annotate(CheckSize({npus_, 0}), file_));
    }
    TopologySize size{npus_, 0};
    for (const Dimension& dimension : dimensions_) {
      const int64_t groups = npus_ / dimension.count;
      if (dimension.shape == Shape::kSwitch) size.nodes += groups;
      size.links += dimension.shape == Shape::kFullyConnected ? npus_ * (dimension.count - 1) : 2 * npus_;
    }
    return Annotate(CheckSize(size), file_);
  }

  void AddNpus() {
    int64_t per_host = npus_;
    const auto slower = [&](const Dimension& other) {
      return other.link.bandwidth_bytes_per_s < dimensions_[0].link.bandwidth_bytes_per_s;
    };
    if (dimensions_.size() > 1 && std::all_of(dimensions_.begin() + 1, dimensions_.end(), slower)) {
      per_host = dimensions_[0].count;
      spec_.warnings.push_back(fmt::format(
          "{}: the {} NPUs of dimension 1, the fastest, are taken to be a host", file_, per_host));
    }
    for (int64_t n = 0; n < npus_; ++n) {
      if (n % per_host == 0) spec_.hosts.push_back(Host{fmt::format("h{}", n / per_host)});
      npu_.push_back(AddNode(NodeKind::kGpu, std::to_string(n % per_host), HostId(n / per_host), spec_));
    }
  }

  void AddDimension(size_t d, int64_t stride) {
    const Dimension& dimension = dimensions_[d];
    int64_t group = 0;
    for (int64_t first = 0; first < npus_; ++first) {
      if (first / stride % dimension.count != 0) continue;
      const auto npu = [&](int64_t i) { return npu_[static_cast<size_t>(first + i * stride)]; };
      switch (dimension.shape) {
        case Shape::kRing:
          for (int64_t i = 0; i < (dimension.count == 2 ? 1 : dimension.count); ++i)
            AddCable(npu(i), npu((i + 1) % dimension.count), dimension.link, spec_);
          break;
        case Shape::kFullyConnected:
          for (int64_t i = 0; i < dimension.count; ++i)
            for (int64_t j = i + 1; j < dimension.count; ++j) AddCable(npu(i), npu(j), dimension.link, spec_);
          break;
        case Shape::kSwitch: {
          const bool inside = d == 0 && spec_.hosts.size() > 1;
          const NodeId node =
              AddNode(NodeKind::kSwitch, inside ? "switch" : fmt::format("switch{}-{}", d + 1, group),
                      inside ? std::optional(HostId(group)) : std::nullopt, spec_);
          for (int64_t i = 0; i < dimension.count; ++i) AddCable(npu(i), node, dimension.link, spec_);
          break;
        }
      }
      ++group;
    }
  }

  std::string file_;
  LinkFlag flag_;
  TopologySpec spec_;
  std::vector<Dimension> dimensions_;
  int64_t npus_ = 1;
  std::vector<NodeId> npu_;
};

}  // namespace

bool IsAstraSimNetwork(std::string_view text) {
  bool topology = false, count = false;
  for (size_t at = 0; at < text.size() && !(topology && count);) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::string_view key = line.substr(0, line.find(':'));
    if (key.size() < line.size()) {
      topology = topology || WordsOf(key) == std::vector<std::string_view>{"topology"};
      count = count || WordsOf(key) == std::vector<std::string_view>{"npus_count"};
    }
    at = end + 1;
  }
  return topology && count;
}

StatusOr<Topology> ReadAstraSimNetwork(std::string_view text, std::string_view file,
                                       const LoadOptions& options) {
  return AstraSimReader(file).Read(text, options);
}

}  // namespace xccl
