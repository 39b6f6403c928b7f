#include "bench/machines.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;
constexpr int64_t kGb = 1'000'000'000;
constexpr int64_t kHalfUs = 500'000;

using Fields = std::vector<std::string>;

StatusOr<int64_t> Number(const Fields& fields, size_t at) {
  if (at >= fields.size()) return UsageError(fmt::format("machine '{}': field {} is missing", fields[0], at));
  return ParseInteger(fields[at], 1, 100'000);
}

TopologySpec WithRanks(const Fields& fields, int64_t ranks) {
  TopologySpec spec;
  spec.name = fmt::format("{}", fmt::join(fields, "-"));
  for (int64_t r = 0; r < ranks; ++r)
    spec.nodes.push_back({NodeKind::kGpu, std::to_string(r), {}, false, false});
  return spec;
}

NodeId AddForwarder(TopologySpec& spec, NodeKind kind, std::string id) {
  spec.nodes.push_back({kind, std::move(id), {}, false, false});
  return NodeId(static_cast<int64_t>(spec.nodes.size()) - 1);
}

void OneWay(TopologySpec& spec, int64_t from, int64_t to, int64_t bandwidth, int64_t latency) {
  spec.links.push_back({NodeId(from), NodeId(to), bandwidth, latency, 0});
}

void BothWays(TopologySpec& spec, int64_t a, int64_t b, int64_t bandwidth, int64_t latency) {
  OneWay(spec, a, b, bandwidth, latency);
  OneWay(spec, b, a, bandwidth, latency);
}

StatusOr<TopologySpec> MixedMesh(const Fields& fields) {
  if (fields.size() != 4) return UsageError("mixed-mesh:RxC:H:V");
  const Fields sides = Split(fields[1], 'x');
  if (sides.size() != 2) return UsageError("mixed-mesh:RxC:H:V");
  XCCL_ASSIGN_OR_RETURN(const int64_t rows, ParseInteger(sides[0], 1, 1000));
  XCCL_ASSIGN_OR_RETURN(const int64_t columns, ParseInteger(sides[1], 1, 1000));
  XCCL_ASSIGN_OR_RETURN(const int64_t horizontal, Number(fields, 2));
  XCCL_ASSIGN_OR_RETURN(const int64_t vertical, Number(fields, 3));
  TopologySpec spec = WithRanks(fields, rows * columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t here = r * columns + c;
      if (c + 1 < columns) BothWays(spec, here, here + 1, horizontal * kGib, kHalfUs);
      if (r + 1 < rows) BothWays(spec, here, here + columns, vertical * kGib, kHalfUs);
    }
  return spec;
}

StatusOr<TopologySpec> Unwound(const Fields& fields) {
  XCCL_ASSIGN_OR_RETURN(const int64_t ports, Number(fields, 1));
  XCCL_ASSIGN_OR_RETURN(const int64_t degree, Number(fields, 2));
  XCCL_ASSIGN_OR_RETURN(const int64_t gib_per_s, Number(fields, 3));
  TopologySpec spec = WithRanks(fields, ports);
  for (int64_t i = 0; i < ports; ++i)
    for (int64_t d = 1; d <= degree; ++d)
      OneWay(spec, i, (i + d) % ports, gib_per_s * kGib / degree, kHalfUs);
  return spec;
}

StatusOr<TopologySpec> A100Unwound(const Fields& fields) {
  XCCL_ASSIGN_OR_RETURN(const int64_t hosts, Number(fields, 1));
  if (hosts < 2) return UsageError("a100-unwound:H needs two boxes or more");
  TopologySpec spec = WithRanks(fields, 8 * hosts);
  for (int64_t h = 0; h < hosts; ++h)
    for (int64_t i = 0; i < 8; ++i) {
      for (int64_t j = i + 1; j < 8; ++j) BothWays(spec, 8 * h + i, 8 * h + j, 42 * kGib, kHalfUs);
      for (int64_t g = h + 1; g < hosts; ++g)
        BothWays(spec, 8 * h + i, 8 * g + i, 25 / (hosts - 1) * kGib, 5 * kHalfUs);
    }
  return spec;
}

StatusOr<TopologySpec> DragonflyDirect(const Fields& fields) {
  TopologySpec spec = WithRanks(fields, 20);
  for (int64_t g = 0; g < 4; ++g)
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = i + 1; j < 5; ++j) BothWays(spec, 5 * g + i, 5 * g + j, 100 * kGib, kHalfUs);
  for (int64_t a = 0; a < 4; ++a)
    for (int64_t b = a + 1; b < 4; ++b) BothWays(spec, 5 * a + b - 1, 5 * b + a, 50 * kGib, kHalfUs);
  return spec;
}

// An NDv2 in TE-CCL's GPU order: pairs with one and pairs with two NVLinks of 25.
StatusOr<TopologySpec> Ndv2(const Fields& fields) {
  static constexpr int8_t kSingle[][2] = {{0, 2}, {0, 3}, {1, 2}, {1, 5}, {3, 7}, {4, 6}, {4, 7}, {5, 6}};
  static constexpr int8_t kDouble[][2] = {{0, 1}, {0, 4}, {1, 3}, {2, 3}, {2, 6}, {4, 5}, {5, 7}, {6, 7}};
  XCCL_ASSIGN_OR_RETURN(const int64_t hosts, Number(fields, 1));
  const int64_t unit = fields.size() > 2 && fields[2] == "GB" ? kGb : kGib;
  TopologySpec spec = WithRanks(fields, 8 * hosts);
  for (int64_t h = 0; h < hosts; ++h) {
    for (const auto& [a, b] : kSingle) BothWays(spec, 8 * h + a, 8 * h + b, 25 * unit, 700'000);
    for (const auto& [a, b] : kDouble) BothWays(spec, 8 * h + a, 8 * h + b, 50 * unit, 700'000);
  }
  if (hosts == 2) {
    OneWay(spec, 0, 9, 25 * unit / 2, 1'300'000);
    OneWay(spec, 8, 1, 25 * unit / 2, 1'300'000);
    return spec;
  }
  const NodeId fabric = AddForwarder(spec, NodeKind::kSwitch, "ib");
  for (int64_t h = 0; h < hosts; ++h) {
    OneWay(spec, 8 * h, fabric.value, 25 * unit / 2, 1'300'000);
    OneWay(spec, fabric.value, 8 * h + 1, 25 * unit / 2, 1'300'000);
  }
  return spec;
}

// Boxes of 8 A100 whose NIC i is on switch i modulo `switches`.
StatusOr<TopologySpec> A100Boxes(const Fields& fields, int64_t switches) {
  XCCL_ASSIGN_OR_RETURN(const int64_t hosts, Number(fields, 1));
  TopologySpec spec = WithRanks(fields, 8 * hosts);
  std::vector<NodeId> fabric;
  for (int64_t s = 0; s < switches; ++s)
    fabric.push_back(AddForwarder(spec, NodeKind::kSwitch, fmt::format("ib{}", s)));
  for (int64_t h = 0; h < hosts; ++h) {
    const NodeId inside = AddForwarder(spec, NodeKind::kSwitch, fmt::format("nvsw{}", h));
    for (int64_t i = 0; i < 8; ++i) {
      BothWays(spec, 8 * h + i, inside.value, 300 * kGb, 350'000);
      if (hosts == 1) continue;
      const NodeId nic = AddForwarder(spec, NodeKind::kNic, fmt::format("nic{}", 8 * h + i));
      BothWays(spec, 8 * h + i, nic.value, 25 * kGb, 0);
      BothWays(spec, nic.value, fabric[static_cast<size_t>(i % switches)].value, 25 * kGb, 1'300'000);
    }
  }
  return spec;
}

StatusOr<TopologySpec> Mi250Unwound(const Fields& fields, const std::string& graphs_folder) {
  XCCL_ASSIGN_OR_RETURN(const Topology box, LoadTopology(graphs_folder + "/mi250x1.xml"));
  const int64_t ranks = box.num_ranks();
  TopologySpec spec = WithRanks(fields, 2 * ranks);
  for (int64_t h = 0; h < 2; ++h)
    for (const Link& link : box.spec().links)
      OneWay(spec, h * ranks + link.from.value, h * ranks + link.to.value, link.bandwidth_bytes_per_s,
             link.latency_ps);
  for (int64_t i = 0; i < ranks; ++i) BothWays(spec, i, ranks + i, 16 * kGib, 1'300'000);
  return spec;
}

}  // namespace

StatusOr<Topology> LoadMachine(std::string_view name, const std::string& graphs_folder) {
  using Maker = std::function<StatusOr<TopologySpec>(const Fields&)>;
  static const std::map<std::string, Maker, std::less<>> makers = {
      {"mixed-mesh", MixedMesh},
      {"unwound", Unwound},
      {"a100-unwound", A100Unwound},
      {"dragonfly-direct", DragonflyDirect},
      {"ndv2-one-nic", Ndv2},
      {"a100", [](const Fields& fields) { return A100Boxes(fields, 2); }},
      {"rail", [](const Fields& fields) { return A100Boxes(fields, 8); }},
  };
  if (name.starts_with("graphs/"))
    return LoadTopology(fmt::format("{}/{}.xml", graphs_folder, name.substr(7)));
  const Fields fields = Split(name, ':');
  const auto maker = makers.find(fields[0]);
  if (fields[0] != "mi250-unwound" && maker == makers.end()) return LoadTopology(name);
  XCCL_ASSIGN_OR_RETURN(TopologySpec spec,
                        maker == makers.end() ? Mi250Unwound(fields, graphs_folder) : maker->second(fields));
  return Topology::Create(std::move(spec));
}

}  // namespace xccl
