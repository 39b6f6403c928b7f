#include "tests/testing/machine_kinds.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "topologies/families/networks.h"

namespace xccl::testing {
namespace {

constexpr int64_t kMb = 1'000'000, kNs = 1'000;

// The cube mesh of a DGX-1, each pair with its number of links.
struct Bonded {
  int32_t a, b, links;
};
constexpr Bonded kDgx1[] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                            {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                            {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};

class KindMaker {
 public:
  KindMaker(int32_t kind, uint64_t seed, int32_t max_ranks) : random_(seed), most_(max_ranks) {
    spec_.name = fmt::format("kind-{}-seed-{}-most-{}", kind, seed, max_ranks);
  }

  Topology Make(int32_t kind) {
    switch (kind) {
      case 0:
        NvswitchHosts([&](int32_t g, int32_t) { return g; }, false);
        break;
      case 1:
        NvswitchHosts([&](int32_t g, int32_t nics) { return g % nics; }, true);
        break;
      case 2:
        RingOfHosts();
        break;
      case 3:
        PcieTrees();
        break;
      case 4:
        LeafSpine();
        break;
      case 5:
        Dragonfly();
        break;
      case 6:
        Grid(false);
        break;
      case 7:
        Grid(true);
        break;
      case 8:
        Accelerators();
        break;
      default:
        DamagedBoxes();
        break;
    }
    return Topology::Create(spec_).value();
  }

 private:
  int32_t Below(int32_t bound) { return static_cast<int32_t>(random_.Below(static_cast<uint64_t>(bound))); }
  int32_t From(int32_t low, int32_t high) { return low + Below(std::max(1, high - low + 1)); }
  int64_t OneOf(std::initializer_list<int64_t> values) {
    return values.begin()[Below(static_cast<int32_t>(values.size()))];
  }

  HostId AddHost() {
    spec_.hosts.push_back(Host{fmt::format("h{}", spec_.hosts.size())});
    return HostId(static_cast<int64_t>(spec_.hosts.size()) - 1);
  }
  NodeId Add(NodeKind kind, std::optional<HostId> host = std::nullopt) {
    return AddNode(kind, fmt::format("{}{}", NodeKindName(kind).substr(0, 1), spec_.nodes.size()), host,
                   spec_);
  }
  std::vector<NodeId> AddGpus(int32_t count, std::optional<HostId> host = std::nullopt) {
    std::vector<NodeId> gpus;
    for (int32_t g = 0; g < count; ++g) gpus.push_back(Add(NodeKind::kGpu, host));
    return gpus;
  }
  void Cable(NodeId a, NodeId b, int64_t mb_per_s, int64_t ns) {
    AddCable(a, b, {mb_per_s * kMb, ns * kNs, 0}, spec_);
  }

  // A host of `gpus` GPUs on an NVSwitch.
  std::vector<NodeId> NvswitchHost(int32_t gpus, int64_t mb_per_s, bool multicast) {
    const HostId host = AddHost();
    std::vector<NodeId> all = AddGpus(gpus, host);
    const NodeId nvswitch = Add(NodeKind::kSwitch, host);
    spec_.nodes[nvswitch.index()].multicast = spec_.nodes[nvswitch.index()].reduce = multicast;
    for (NodeId gpu : all) Cable(gpu, nvswitch, mb_per_s, 350);
    return all;
  }

  // GPU g of each host has NIC nic_of(g); NIC i joins rail i, or all join one fabric where NICs are unlike.
  template <typename NicOf>
  void NvswitchHosts(NicOf nic_of, bool unlike) {
    const int32_t gpus = From(2, std::min(8, most_ / 2)), hosts = From(2, std::max(2, most_ / gpus));
    const int32_t nics = unlike ? From(1, gpus) : gpus;
    const int64_t inside = OneOf({300'000, 450'000}), port = OneOf({25'000, 50'000});
    const bool multicast = Below(2) == 0;
    std::vector<NodeId> ends;
    for (int32_t h = 0; h < hosts; ++h) {
      const std::vector<NodeId> all = NvswitchHost(gpus, inside, multicast);
      std::vector<NodeId> own;
      for (int32_t n = 0; n < nics; ++n) own.push_back(Add(NodeKind::kNic, HostId(h)));
      for (int32_t g = 0; g < gpus; ++g)
        if (!unlike || g < nics || Below(2) == 0) Cable(all[g], own[nic_of(g, nics)], port, 600);
      ends.insert(ends.end(), own.begin(), own.end());
    }
    const std::vector<NodeId> rails = [&] {
      std::vector<NodeId> switches;
      for (int32_t r = 0; r < (unlike ? 1 : nics); ++r) switches.push_back(Add(NodeKind::kSwitch));
      return switches;
    }();
    for (size_t e = 0; e < ends.size(); ++e)
      Cable(ends[e], rails[e % rails.size()], unlike ? OneOf({12'500, 25'000, 50'000}) : port, 1300);
  }

  void RingOfHosts() {
    const int32_t gpus = From(2, std::min(8, most_ / 3)), hosts = From(3, std::max(3, most_ / gpus));
    std::vector<std::vector<NodeId>> all;
    for (int32_t h = 0; h < hosts; ++h) all.push_back(NvswitchHost(gpus, 450'000, false));
    for (int32_t h = 0; h < hosts; ++h)
      Cable(all[h].back(), all[(h + 1) % hosts].front(), OneOf({12'500, 25'000, 50'000}), 1000);
  }

  // Per host: two sockets of two switches with GPUs; a NIC on the first switch of each socket.
  void PcieTrees() {
    const int32_t hosts = From(1, 2), each = From(1, std::max(1, most_ / hosts / 4));
    std::vector<NodeId> nics;
    for (int32_t h = 0; h < hosts; ++h) {
      const HostId host = AddHost();
      NodeId cpus[2];
      for (NodeId& cpu : cpus) {
        cpu = Add(NodeKind::kCpu, host);
        for (int32_t s = 0; s < 2; ++s) {
          const NodeId bridge = Add(NodeKind::kSwitch, host);
          Cable(bridge, cpu, 32'000, 300);
          for (NodeId gpu : AddGpus(each, host)) Cable(gpu, bridge, 32'000, 300);
          if (s > 0) continue;
          nics.push_back(Add(NodeKind::kNic, host));
          Cable(nics.back(), bridge, 12'500, 600);
        }
      }
      Cable(cpus[0], cpus[1], OneOf({10'000, 20'000}), 300);
    }
    const NodeId fabric = Add(NodeKind::kSwitch);
    for (NodeId nic : nics) Cable(nic, fabric, 12'500, 1300);
  }

  void LeafSpine() {
    const int32_t leaves = From(2, 4), each = From(1, std::max(1, most_ / leaves)), spines = From(1, 4);
    std::vector<NodeId> tops;
    for (int32_t s = 0; s < spines; ++s) tops.push_back(Add(NodeKind::kSwitch));
    for (int32_t l = 0; l < leaves; ++l) {
      const NodeId leaf = Add(NodeKind::kSwitch);
      for (NodeId gpu : AddGpus(each, AddHost())) Cable(gpu, leaf, 50'000, 500);
      for (NodeId top : tops) Cable(leaf, top, OneOf({12'500, 12'500, 6'250}), 500);
    }
  }

  void Dragonfly() {
    const int32_t groups = From(2, 4), routers = From(1, 3),
                  each = From(1, std::max(1, most_ / groups / routers));
    std::vector<std::vector<NodeId>> all(static_cast<size_t>(groups));
    for (std::vector<NodeId>& group : all)
      for (int32_t r = 0; r < routers; ++r) {
        const NodeId router = Add(NodeKind::kSwitch);
        for (NodeId gpu : AddGpus(each)) Cable(gpu, router, 25'000, 500);
        for (NodeId other : group) Cable(router, other, 25'000, 500);
        group.push_back(router);
      }
    for (int32_t a = 0; a < groups; ++a)
      for (int32_t b = a + 1; b < groups; ++b)
        Cable(all[a][Below(routers)], all[b][Below(routers)], OneOf({12'500, 25'000}), 1500);
  }

  // A torus loses one to three cables that do not cut it apart; a mesh has one slow row.
  void Grid(bool torus) {
    const int32_t rows = From(2, 4), columns = From(2, std::max(2, most_ / rows)), slow = Below(rows);
    const std::vector<NodeId> gpus = AddGpus(rows * columns);
    const auto at = [&](int32_t r, int32_t c) { return gpus[(r % rows) * columns + c % columns]; };
    for (int32_t r = 0; r < rows; ++r)
      for (int32_t c = 0; c < columns; ++c) {
        if (c + 1 < columns || (torus && columns > 2))
          Cable(at(r, c), at(r, c + 1), !torus && r == slow ? 12'500 : 50'000, 500);
        if (r + 1 < rows || (torus && rows > 2)) Cable(at(r, c), at(r + 1, c), 50'000, 500);
      }
    if (torus) Damage(From(1, 3));
  }

  // Pairs of dies with 200 GB/s, a ring with 100 and chords with 50 GB/s; two cables are missing.
  void Accelerators() {
    const int32_t count = most_ >= 16 && Below(2) == 0 ? 16 : 8;
    const std::vector<NodeId> gpus = AddGpus(count);
    for (int32_t g = 0; g < count; ++g) {
      if (g % 2 == 0) Cable(gpus[g], gpus[g + 1], 200'000, 600);
      if (g % 2 == 1) Cable(gpus[g], gpus[(g + 1) % count], 100'000, 600);
      if (g < count / 2) Cable(gpus[g], gpus[g + count / 2], 50'000, 600);
    }
    Damage(2);
  }

  void DamagedBoxes() {
    const int32_t boxes = From(1, std::max(1, most_ / 8));
    std::vector<NodeId> first;
    for (int32_t b = 0; b < boxes; ++b) {
      const std::vector<NodeId> gpus = AddGpus(8, AddHost());
      for (const Bonded& bond : kDgx1) Cable(gpus[bond.a], gpus[bond.b], 25'000 * bond.links, 700);
      for (int32_t port = 0; port < 2 && b > 0; ++port)
        Cable(first[static_cast<size_t>(port) * 4], gpus[static_cast<size_t>(port) * 4], 12'500, 1300);
      first = gpus;
    }
    Damage(From(1, 3));
  }

  // Removes cables one by one, so that all nodes still reach each other. Requires: links are cables.
  void Damage(int32_t cables) {
    for (; cables > 0; --cables) {
      std::vector<Link> kept = spec_.links;
      const auto at = 2 * static_cast<ptrdiff_t>(random_.Below(kept.size() / 2));
      kept.erase(kept.begin() + at, kept.begin() + at + 2);
      if (Connected(kept)) spec_.links = std::move(kept);
    }
  }
  bool Connected(const std::vector<Link>& links) const {
    std::set<NodeId> seen = {NodeId(0)};
    for (size_t before = 0; before != seen.size();) {
      before = seen.size();
      for (const Link& link : links)
        if (seen.contains(link.from)) seen.insert(link.to);
    }
    return seen.size() == spec_.nodes.size();
  }

  Random random_;
  int32_t most_;
  TopologySpec spec_;
};

}  // namespace

Topology MakeMachineOfKind(int32_t kind, uint64_t seed, int32_t max_ranks) {
  XCCL_CHECK(kind >= 0 && kind < kMachineKinds && max_ranks >= 8);
  return KindMaker(kind, seed, max_ranks).Make(kind);
}

Topology WithDamage(const Topology& topology, size_t cable, bool gone) {
  TopologySpec spec = topology.spec();
  const auto link = spec.links.begin() + 2 * static_cast<ptrdiff_t>(cable);
  if (gone)
    spec.links.erase(link, link + 2);
  else
    link->bandwidth_bytes_per_s = (link + 1)->bandwidth_bytes_per_s /= 10;
  return Topology::Create(std::move(spec)).value();
}

}  // namespace xccl::testing
