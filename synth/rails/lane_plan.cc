// K is the most waves of a tree. The root deals wave j to its host in step j. An edge of level v between
// hosts takes step K + 3(v-1). The two hops inside the host that it enters take the next two steps. Steps
// only order the transfers that wait at a link; a chunk moves on as soon as it is there.
//
// Lanes on one port take turns wave by wave. Edges and hops then take one step for each wave; otherwise a
// tree would wait until all data of another tree has passed. If only links between switches are shared, only
// edges, and hops inside hosts that send the tree on, take a step for each wave. Inside other hosts, a hop
// takes one step for all waves, after the last edge.
//
// If the schedule is played backwards, a GPU adds up what all members of its host send, and all of that is
// there at the start. Members then send wave by wave, one step for each wave, so that the first sums are
// complete early. Edges of successive levels are then K + 2 steps apart, not 3, unless streams take turns.
#include "synth/rails/lane_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "synth/rails/fabric_routes.h"

namespace xccl {
namespace {

const Port& PortAt(std::span<const RailHost> hosts, int32_t host, int32_t lane) {
  const RailHost& at = hosts[static_cast<size_t>(host)];
  return at.ports[static_cast<size_t>(at.lanes[static_cast<size_t>(lane)])];
}

// Returns the bytes per second of one of the root's lanes.
double LaneRate(std::span<const RailHost> hosts) {
  const auto on_port = std::ranges::count(hosts[0].lanes, hosts[0].lanes[0]);
  return static_cast<double>(PortAt(hosts, 0, 0).bandwidth_bytes_per_s) / static_cast<double>(on_port);
}

class Writer {
 public:
  Writer(const Topology& topology, const std::vector<RailHost>& hosts, Rank root, const HostTrees& trees,
         const TreeRoutes& routes, const Waves& waves, bool in_turns, bool backwards, std::string_view engine)
      : topology_(topology),
        hosts_(hosts),
        root_(root),
        trees_(trees),
        routes_(routes),
        waves_(waves),
        backwards_(backwards),
        engine_(engine),
        search_(topology),
        helpers_(topology),
        load_(static_cast<size_t>(topology.num_links()), 0) {
    for (const std::vector<int64_t>& tree : waves) {
      first_.push_back(schedule_.num_chunks);
      schedule_.num_chunks += static_cast<int32_t>(tree.size());
      deal_steps_ = std::max(deal_steps_, static_cast<int32_t>(tree.size()));
      total_ += Sum(tree);
    }
    for (const RailHost& host : hosts)
      in_turns_ |= std::set(host.lanes.begin(), host.lanes.end()).size() < host.lanes.size();
    cross_in_turns_ = in_turns || in_turns_;
  }

  StatusOr<Schedule> Write() {
    int64_t ranks = 0;
    for (const RailHost& host : hosts_) ranks += std::ssize(host.gpus);
    schedule_.Reserve(ranks * std::ssize(waves_) + schedule_.num_chunks);
    arrivals_.assign(hosts_.size(), std::vector<Arrival>(waves_.size()));
    for (size_t t = 0; t < waves_.size(); ++t) {
      const HostEdge& first = trees_.trees[t].front();  // all of the tree's edges from host 0 have one lane
      arrivals_[0][t] = {PortAt(hosts_, 0, first.lane).gpu, deal_steps_, backwards_ || cross_in_turns_};
      for (size_t e = 0; e < trees_.trees[t].size(); ++e) {
        const HostEdge& edge = trees_.trees[t][e];
        const int32_t step =
            deal_steps_ + (backwards_ && !cross_in_turns_ ? deal_steps_ + 2 : 3) * (edge.level - 1);
        Cross(edge, t, step, routes_.ways[t][e]);
        arrivals_[static_cast<size_t>(edge.child)][t] = {PortAt(hosts_, edge.child, edge.lane).gpu, step + 1,
                                                         backwards_ || cross_in_turns_};
      }
    }
    PutLeavesLast();
    XCCL_RETURN_IF_ERROR(Deal());
    for (size_t h = 0; h < hosts_.size(); ++h) XCCL_RETURN_IF_ERROR(Inside(h));
    Normalize(schedule_);
    return std::move(schedule_);
  }

 private:
  // The GPU at which a tree's chunks enter a host, and the step in which that GPU can send them on.
  struct Arrival {
    Rank gpu;
    int32_t step = 0;
    bool in_turns = false;  // the waves come, and go on, one step apart
  };

  // Delays a tree's chunks inside hosts that send the tree to no other host, until the tree has reached its
  // last host. Chunks that a host sends on then go first.
  void PutLeavesLast() {
    for (size_t t = 0; t < waves_.size(); ++t) {
      std::vector<bool> sends(hosts_.size(), false);
      int32_t last = 0;
      for (const HostEdge& edge : trees_.trees[t]) {
        sends[static_cast<size_t>(edge.parent)] = true;
        last = std::max(last, arrivals_[static_cast<size_t>(edge.child)][t].step);
      }
      if (cross_in_turns_ && !in_turns_) last += WavesOf(t);  // after the last wave
      for (size_t h = 1; h < hosts_.size(); ++h)
        if (!sends[h]) arrivals_[h][t] = {arrivals_[h][t].gpu, last, backwards_ || in_turns_};
    }
  }

  static int64_t Sum(const std::vector<int64_t>& weights) {
    return std::accumulate(weights.begin(), weights.end(), int64_t{0});
  }
  void Add(size_t tree, int32_t wave, int32_t count, Rank src, Rank dst, const std::vector<LinkId>& path,
           int32_t step) {
    double weight = 0;
    for (int32_t j = wave; j < wave + count; ++j)
      weight += static_cast<double>(waves_[tree][static_cast<size_t>(j)]);
    for (LinkId l : path) load_[l.index()] += weight;
    const int32_t place = backwards_ ? WavesOf(tree) - wave - count : wave;
    schedule_.Add(ChunkId(first_[tree] + place), count, src, dst, path, TransferOp::kCopy, step);
  }
  int32_t WavesOf(size_t tree) const { return static_cast<int32_t>(waves_[tree].size()); }

  void AddMulticast(size_t tree, int32_t wave, int32_t count, Rank src, const std::vector<LinkId>& links,
                    int32_t step) {
    Add(tree, wave, count, src, *topology_.RankOf(topology_.link(links[1]).to), links, step);
  }

  void Cross(const HostEdge& edge, size_t tree, int32_t step, const std::vector<LinkId>& between) {
    const Port& from = PortAt(hosts_, edge.parent, edge.lane);
    const Port& to = PortAt(hosts_, edge.child, edge.lane);
    std::vector<LinkId> path = from.out;
    path.insert(path.end(), between.begin(), between.end());
    path.insert(path.end(), to.in.begin(), to.in.end());
    const int32_t waves = WavesOf(tree), together = cross_in_turns_ ? 1 : waves;
    for (int32_t wave = 0; wave < waves; wave += together)
      Add(tree, wave, together, from.gpu, to.gpu, path, step + wave);
  }

  // Returns the links of a multicast from the GPU to its host's other members. Returns nullopt if the GPU can
  // send each of them all that a lane brings, or if no switch multicasts.
  StatusOr<std::optional<std::vector<LinkId>>> Multicast(size_t h, Rank gpu,
                                                         const std::vector<Rank>& others) {
    if (others.empty()) return std::optional<std::vector<LinkId>>();
    XCCL_RETURN_IF_ERROR(SearchFrom(gpu, others[0], search_));
    const bool is_slow = static_cast<double>(others.size()) * LaneRate(hosts_) >
                         static_cast<double>(search_.BandwidthTo(hosts_[h].gpus));
    return is_slow ? MulticastTo(topology_, gpu, others, backwards_, load_) : std::nullopt;
  }
  std::vector<Rank> OthersOf(size_t h, Rank gpu) const {
    std::vector<Rank> others;
    for (Rank r : hosts_[h].gpus)
      if (r != gpu && !(h == 0 && r == root_)) others.push_back(r);
    return others;
  }

  // Adds the root's sends to the GPUs where trees start, wave by wave.
  Status Deal() {
    for (int32_t wave = 0; wave < deal_steps_; ++wave) {
      for (size_t t = 0; t < waves_.size(); ++t) {
        const Rank gpu = arrivals_[0][t].gpu;
        if (gpu == root_ || wave >= WavesOf(t)) continue;
        XCCL_RETURN_IF_ERROR(SearchFrom(root_, gpu, search_));
        Add(t, wave, 1, root_, gpu, WayInside(root_, gpu, wave, search_), wave);
      }
    }
    return OkStatus();
  }

  // Searches from a rank unless `search` did so last. Returns an error if no way leads to the rank `to`.
  Status SearchFrom(Rank from, Rank to, HostSearch& search) {
    std::optional<Rank>& last = &search == &search_ ? last_search_ : last_helper_;
    if (last != from) search.Run(from, false);
    last = from;
    if (search.Reaches(topology_.NodeOf(to))) return OkStatus();
    return InvalidInput(fmt::format(
        "{}: no path inside the host from rank {} to rank {}; expected one through no other gpu; hint: "
        "--engine=forest",
        engine_, from.value, to.value));
  }

  // Returns a best way. Equally good ways, such as one through each switch, take turns by source +
  // destination + wave. For each wave the ways are then a Latin square, which loads the switches evenly.
  std::vector<LinkId> WayInside(Rank from, Rank to, int32_t wave, const HostSearch& search) const {
    return search.Way(topology_.NodeOf(to), static_cast<size_t>(from.value) + static_cast<size_t>(to.value) +
                                                static_cast<size_t>(wave));
  }

  // Adds the transfers that spread the chunks of all trees inside a host.
  Status Inside(size_t h) {
    const std::vector<Rank>& gpus = hosts_[h].gpus;
    std::vector<size_t> order(waves_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t t) { return arrivals_[h][t].gpu; });
    sent_.assign(gpus.size(), 0);
    speed_.assign(gpus.size(), 0);
    // Counts what every GPU sends if no helper spreads a chunk for it (Spread). The root also deals chunks.
    for (size_t t = 0; t < waves_.size(); ++t) {
      const Rank gpu = arrivals_[h][t].gpu;
      const double fan = static_cast<double>(std::ssize(gpus) - (h == 0 && gpu != root_ ? 2 : 1));
      sent_[IndexOf(h, gpu)] += fan * static_cast<double>(Sum(waves_[t]));
      if (h == 0 && gpu != root_) sent_[IndexOf(0, root_)] += static_cast<double>(Sum(waves_[t]));
    }
    for (size_t t : order) {
      const Rank gpu = arrivals_[h][t].gpu;
      std::vector<Rank> others = OthersOf(h, gpu);
      if (others.empty()) continue;
      XCCL_ASSIGN_OR_RETURN(const std::optional<std::vector<LinkId>> to_all, Multicast(h, gpu, others));
      if (to_all) {
        const int32_t waves = WavesOf(t), together = arrivals_[h][t].in_turns ? 1 : waves;
        for (int32_t wave = 0; wave < waves; wave += together)
          AddMulticast(t, wave, together, gpu, *to_all, arrivals_[h][t].step + wave);
        continue;
      }
      for (Rank r : others) XCCL_RETURN_IF_ERROR(SearchFrom(gpu, r, search_));
      // Each GPU begins with the member after itself, so that the receivers are evenly busy.
      std::rotate(others.begin(), std::ranges::upper_bound(others, gpu), others.end());
      XCCL_RETURN_IF_ERROR(Spread(h, t, gpu, others));
    }
    return OkStatus();
  }

  size_t IndexOf(size_t h, Rank r) const {
    return static_cast<size_t>(std::ranges::lower_bound(hosts_[h].gpus, r) - hosts_[h].gpus.begin());
  }
  // Returns the time that a GPU needs for all that it sends inside its host, if it sends `weight` more.
  double BusyWith(size_t h, Rank r, double weight, HostSearch& search) {
    const size_t i = IndexOf(h, r);
    if (speed_[i] == 0)
      speed_[i] = static_cast<double>(std::max<int64_t>(1, search.BandwidthTo(hosts_[h].gpus)));
    return (sent_[i] + weight) / speed_[i];
  }

  // Sends a tree's chunks from a GPU to the other members of its host. If the GPU is busy for longer than a
  // lane, it sends a chunk only to a helper: a less busy member, which sends the chunk to the rest.
  Status Spread(size_t h, size_t tree, Rank gpu, const std::vector<Rank>& others) {
    const double fan = static_cast<double>(others.size());
    const double longest = LaneTime();
    int32_t from = 0;  // the first wave that is not written yet; `by` spreads it and the waves up to now
    std::optional<Rank> by;
    const auto flush = [&](int32_t to) -> Status {
      if (!arrivals_[h][tree].in_turns) return SpreadBy(tree, {from, to - from}, gpu, by, others, h);
      for (int32_t wave = from; wave < to; ++wave)
        XCCL_RETURN_IF_ERROR(SpreadBy(tree, {wave, 1}, gpu, by, others, h));
      return OkStatus();
    };
    for (int32_t wave = 0; wave < WavesOf(tree); ++wave) {
      const double weight = static_cast<double>(waves_[tree][static_cast<size_t>(wave)]);
      std::optional<Rank> helper;
      const double busy = BusyWith(h, gpu, 0, search_);
      // The root hands chunks to helpers even if it is not busy, because it also deals out the next waves.
      if (others.size() > 1 && (busy > longest || (h == 0 && gpu == root_))) {
        double least = busy;
        for (Rank r : others) {
          XCCL_RETURN_IF_ERROR(SearchFrom(r, gpu, helpers_));
          const double by_helper = BusyWith(h, r, (fan - 1) * weight, helpers_);
          if (by_helper >= least) continue;
          least = by_helper;
          helper = r;
        }
      }
      if (helper) {
        sent_[IndexOf(h, gpu)] -= (fan - 1) * weight;
        sent_[IndexOf(h, *helper)] += (fan - 1) * weight;
      }
      if (wave > 0 && helper != by) {
        XCCL_RETURN_IF_ERROR(flush(wave));
        from = wave;
      }
      by = helper;
    }
    return flush(WavesOf(tree));
  }

  struct WaveRange {
    int32_t first = 0, count = 0;
  };
  Status SpreadBy(size_t tree, WaveRange range, Rank gpu, std::optional<Rank> by,
                  const std::vector<Rank>& others, size_t h) {
    const int32_t step = arrivals_[h][tree].step + (arrivals_[h][tree].in_turns ? range.first : 0);
    const auto send = [&](Rank from, Rank to, int32_t at, HostSearch& search) -> Status {
      XCCL_RETURN_IF_ERROR(SearchFrom(from, to, search));
      Add(tree, range.first, range.count, from, to, WayInside(from, to, range.first, search), at);
      return OkStatus();
    };
    if (by) XCCL_RETURN_IF_ERROR(send(gpu, *by, step, search_));
    for (Rank r : others)
      if (r != by) XCCL_RETURN_IF_ERROR(by ? send(*by, r, step + 1, helpers_) : send(gpu, r, step, search_));
    return OkStatus();
  }

  // Returns the time that a lane needs for its share of the data, if all shares are equal.
  double LaneTime() const {
    return static_cast<double>(total_) / static_cast<double>(waves_.size()) / LaneRate(hosts_);
  }

  const Topology& topology_;
  const std::vector<RailHost>& hosts_;
  const Rank root_;
  const HostTrees& trees_;
  const TreeRoutes& routes_;
  const Waves& waves_;
  const bool backwards_;
  bool in_turns_ = false;        // lanes of a host share a port
  bool cross_in_turns_ = false;  // in_turns_, or streams share links between switches
  const std::string_view engine_;
  HostSearch search_, helpers_;
  std::optional<Rank> last_search_, last_helper_;
  std::vector<double> load_;    // by link: weight that passes it
  std::vector<int32_t> first_;  // by tree: its first chunk
  int32_t deal_steps_ = 0;
  int64_t total_ = 0;                           // weight of all chunks
  std::vector<std::vector<Arrival>> arrivals_;  // by host, then tree
  std::vector<double> sent_, speed_;            // weight and weight ÷ time, by member of the host at hand
  Schedule schedule_;
};

}  // namespace

StatusOr<TreeRoutes> RoutesOf(const Topology& topology, std::span<const RailHost> hosts,
                              const HostTrees& trees, std::string_view engine) {
  int64_t fastest = 0;
  for (const RailHost& host : hosts)
    for (const Port& port : host.ports) fastest = std::max(fastest, port.bandwidth_bytes_per_s);
  std::vector<Stream> streams;
  for (const std::vector<HostEdge>& tree : trees.trees)
    for (const HostEdge& edge : tree)
      streams.push_back(
          {PortAt(hosts, edge.parent, edge.lane).fabric, PortAt(hosts, edge.child, edge.lane).fabric});
  FabricRoutes fabric(topology, fastest);
  std::vector<std::optional<std::vector<LinkId>>> ways = fabric.Ways(streams);
  TreeRoutes made;
  std::vector<int32_t> users(static_cast<size_t>(topology.num_links()), 0);
  auto way = ways.begin();
  for (const std::vector<HostEdge>& tree : trees.trees) {
    std::vector<std::vector<LinkId>>& of_tree = made.ways.emplace_back();
    for (const HostEdge& edge : tree) {
      if (!*way)
        return InvalidInput(
            fmt::format("{}: no switches join {} and {}; expected a way on every rail; hint: --engine=forest",
                        engine, topology.NodeName(PortAt(hosts, edge.parent, edge.lane).node),
                        topology.NodeName(PortAt(hosts, edge.child, edge.lane).node)));
      for (LinkId l : **way) {
        made.streams = std::max(made.streams, ++users[l.index()]);
        made.busiest = std::max(made.busiest, LaneRate(hosts) * fabric.HeldFor(l, users[l.index()]));
      }
      of_tree.push_back(*std::move(*way++));
    }
  }
  return made;
}

StatusOr<Schedule> ScheduleOfLanes(const Topology& topology, const std::vector<RailHost>& hosts, Rank root,
                                   const HostTrees& trees, const TreeRoutes& routes, const Waves& waves,
                                   bool in_turns, bool backwards, std::string_view engine) {
  return Writer(topology, hosts, root, trees, routes, waves, in_turns, backwards, engine).Write();
}

}  // namespace xccl
