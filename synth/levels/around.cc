// A way is a chain of links between two nodes that passes no GPU and no damaged link. A row is a run of links
// of a path that a way replaces.
// 1. FindRows finds the rows of every translate that passes a damaged link. A row is the damaged link and the
//    fewest neighbours for which a way is no longer than the row, or else as little longer as possible. If
//    possible, a row begins one link earlier, with its lead, so that rows after different leads can take
//    different ways.
// 2. ChooseWays chooses one of the shortest ways for each row, the rows with the most bytes first. It takes
//    the way whose links are done first.
// 3. LeadTheRest gives a way of its own to a path that still passes a lost link, because its rows overlap.
// 4. FindWays gives an heir of a lost rank a path to or from each rank for which the columns have no path.
//    The path goes by way of the lost rank, without the loop to it, and around lost links; otherwise it is a
//    shortest way. A path to the lost rank may be a path from it, reversed.
#include "synth/levels/around.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/damaged.h"
#include "ir/sizes.h"
#include "ir/taken_over.h"
#include "ir/translated.h"
#include "topologies/turned_switches.h"

namespace xccl {
namespace {

using Ways = std::vector<std::vector<LinkId>>;

// Finds the shortest ways between two nodes, which pass no GPU and no damaged link.
class WayFinder {
 public:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  // The most ways that are kept for two nodes: as many as a switch has uplinks. Further ways are ignored.
  static constexpr size_t kMostWays = 64;

  struct Found {
    int64_t cost = kNone;
    Ways ways;
  };

  WayFinder(const Topology& machine, const Detours& damage)
      : machine_(machine), damage_(damage), cost_(static_cast<size_t>(machine.num_nodes()), kNone) {}

  // Returns the link's latency and overhead, and 1 ps more, so that of equally fast ways the one with
  // fewer links is shorter.
  static int64_t CostOf(const Link& link) { return link.latency_ps + link.overhead_ps + 1; }

  const Found& Between(NodeId from, NodeId to) {
    const uint64_t key = (static_cast<uint64_t>(from.index()) << 32) | to.index();
    const auto [at, added] = found_.try_emplace(key);
    // Nodes of lost hosts come after the machine's nodes, and no way leads to them.
    const bool there = std::max(from, to).value < machine_.num_nodes();
    if (added && there) Search(from, to, at->second);
    return at->second;
  }

 private:
  bool Passes(LinkId l) const { return !damage_.IsDamaged(l); }

  void Search(NodeId from, NodeId to, Found& found) {
    using Entry = std::pair<int64_t, int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    std::vector<NodeId> touched = {from};
    cost_[from.index()] = 0;
    queue.push({0, from.value});
    while (!queue.empty()) {
      const auto [cost, n] = queue.top();
      queue.pop();
      const NodeId node(n);
      if (cost != cost_[node.index()]) continue;
      if (node == to) break;
      if (node != from && machine_.IsGpu(node)) continue;
      for (const LinkId l : machine_.Out(node)) {
        const Link& link = machine_.link(l);
        const int64_t next = cost + CostOf(link);
        int64_t& known = cost_[link.to.index()];
        if (!Passes(l) || next >= known) continue;
        if (known == kNone) touched.push_back(link.to);
        known = next;
        queue.push({next, link.to.value});
      }
    }
    found.cost = cost_[to.index()];
    std::vector<LinkId> back;
    if (found.cost != kNone) Trace(from, to, back, found.ways);
    for (const NodeId node : touched) cost_[node.index()] = kNone;
  }

  // Adds the shortest ways that end with `back`, a chain of links from `node` on, which is listed backwards.
  void Trace(NodeId from, NodeId node, std::vector<LinkId>& back, Ways& ways) const {
    if (node == from) {
      ways.emplace_back(back.rbegin(), back.rend());
      return;
    }
    for (const LinkId l : machine_.In(node)) {
      const NodeId before = machine_.link(l).from;
      if (ways.size() >= kMostWays) return;
      if (!Passes(l) || cost_[before.index()] == kNone || (before != from && machine_.IsGpu(before)) ||
          cost_[before.index()] + CostOf(machine_.link(l)) != cost_[node.index()])
        continue;
      back.push_back(l);
      Trace(from, before, back, ways);
      back.pop_back();
    }
  }

  const Topology& machine_;
  const Detours& damage_;
  std::vector<int64_t> cost_;
  std::unordered_map<uint64_t, Found> found_;
};

class Around {
 public:
  Around(Schedule& schedule, const MissingLinks& missing, const Topology& machine, const Topology& whole,
         const SymmetryGroup& group, std::string_view engine)
      : schedule_(schedule),
        missing_(missing),
        machine_(machine),
        whole_(whole),
        group_(group),
        engine_(engine),
        damage_(whole, missing, {}),
        finder_(machine, damage_),
        kinds_(PathKindsOf(schedule.paths, whole, group)) {}

  Status Lead(const CollectiveSizes& sizes) {
    bytes_ = BytesOfKinds(schedule_, sizes, kinds_);
    XCCL_RETURN_IF_ERROR(FindRows());
    ChooseWays();
    XCCL_RETURN_IF_ERROR(LeadTheRest());
    schedule_.missing = missing_;
    return OkStatus();
  }

  // Gives heirs of lost ranks the paths that they need. `sizes` are those of the whole machine's collective.
  // Requires: Lead has returned OK.
  Status FindWays(const Translations& translations, const CollectiveSizes& sizes) {
    const PathsBetween columns(schedule_, kinds_, whole_, group_);
    std::set<std::pair<Rank, Rank>> known;
    std::vector<LinkId> way, rest;
    for (const TakenOver& t : TransfersTakenOver(schedule_, translations, whole_)) {
      if (columns.FindTranslate(t.src, t.dst, way) || !known.emplace(t.src, t.dst).second) continue;
      bool found = FindEitherWay(columns, t.src, t.lost, way) && FindEitherWay(columns, t.lost, t.dst, rest);
      if (found) {
        way.insert(way.end(), rest.begin(), rest.end());
        CutLoops(whole_, way);
        found = Mend(way, sizes.ChunkBytes(t.chunk));
      }
      const double bytes = static_cast<double>(sizes.ChunkBytes(t.chunk));
      if (!found) {
        const Ways& ways = finder_.Between(whole_.NodeOf(t.src), whole_.NodeOf(t.dst)).ways;
        if (ways.empty())
          return InvalidInput(
              fmt::format("{}: rank {} reaches rank {} only through other gpus; expected another way, "
                          "without lost rank {}",
                          engine_, t.src.value, t.dst.value, t.lost.value));
        way = Lightest(ways, bytes);
      }
      for (const LinkId l : way) load_[l.index()] += bytes;
      schedule_.ways.push_back(way);
    }
    return OkStatus();
  }

 private:
  // Links of a path that are replaced together, by a way from `from` to `to`. With a lead, row_links_ has one
  // link more, in front of them, which stays.
  struct Row {
    NodeId from, to;
    bool has_lead = false;
    double bytes = 0;
  };
  // How many links before and after a damaged link are replaced with it, and by how much the way is longer
  // than the replaced links.
  struct Reach {
    size_t before = 0, after = 0;
    int64_t longer = WayFinder::kNone;
  };

  bool IsLost(LinkId l) const { return l.value >= machine_.num_links(); }

  void FindLoads() {
    load_.clear();
    const std::vector<double> columns = BytesOfOrbits(kinds_, bytes_, group_);
    for (int32_t l = 0; l < whole_.num_links(); ++l) {
      const int32_t orbit = group_.OrbitOf(LinkId(l));
      load_.push_back(columns[static_cast<size_t>(orbit)] * group_.LinkShare(orbit));
    }
  }

  // Returns by how much the shortest way around these links of a path is longer; kNone if there is none.
  int64_t Longer(std::span<const LinkId> links) {
    const int64_t cost = finder_.Between(whole_.link(links.front()).from, whole_.link(links.back()).to).cost;
    if (cost == WayFinder::kNone) return cost;
    int64_t before = 0;
    for (const LinkId l : links) before += WayFinder::CostOf(whole_.link(l));
    return cost - before;
  }

  // Returns the fewest links around a damaged link for which a way is no longer than they are. If
  // there are none, returns the links whose way is the least longer. The last result for this damaged
  // link is tried first.
  Reach ReachOf(std::span<const LinkId> path, size_t at) {
    Reach& last = reach_[path[at].value];
    if (last.longer != WayFinder::kNone && at >= last.before && at + last.after < path.size() &&
        Longer(path.subspan(at - last.before, last.before + 1 + last.after)) <= last.longer)
      return last;
    Reach best;
    for (size_t total = 0; total < path.size() && best.longer > 0; ++total)
      for (size_t before = 0; before <= std::min(total, at) && best.longer > 0; ++before) {
        const size_t after = total - before;
        if (at + after >= path.size()) continue;
        const int64_t longer = Longer(path.subspan(at - before, total + 1));
        if (longer < best.longer) best = {before, after, longer};
      }
    return last = best;
  }

  // Finds rows on paths without their end links first (EndLinks::kCut), because few of these paths differ. If
  // a way is longer than its row, finds the rows again on paths with their end links: a way may then also
  // lead around an end link, and be as short as the row.
  Status FindRows() {
    bool is_longer = false;
    for (const EndLinks ends : {EndLinks::kCut, EndLinks::kKept}) {
      rows_.clear();
      row_links_ = {};
      reach_.clear();
      FindLoads();
      is_longer = false;
      XCCL_RETURN_IF_ERROR(FindRows(ends, is_longer));
      if (!is_longer) break;
    }
    return OkStatus();
  }

  Status FindRows(EndLinks ends, bool& is_longer) {
    Status status = OkStatus();
    ForEachDamaged(kinds_, bytes_, damage_, missing_, whole_, group_, ends,
                   [&](std::vector<LinkId>& path, double bytes) {
                     if (!status.ok() || (is_longer && ends == EndLinks::kCut)) return;
                     for (size_t i = 0; i < path.size(); ++i) {
                       if (!damage_.IsDamaged(path[i])) continue;
                       const Reach reach = ReachOf(path, i);
                       is_longer |= reach.longer > 0;
                       if (reach.longer == WayFinder::kNone) {
                         if (!IsLost(path[i]) || ends == EndLinks::kCut) continue;
                         status = NoWay(path, path[i]);
                         return;
                       }
                       AddRow(path, i - reach.before, i + reach.after + 1, bytes);
                     }
                   });
    return status;
  }

  Status NoWay(std::span<const LinkId> path, LinkId lost) const {
    return InvalidInput(fmt::format("{}: rank {} reaches rank {} only through other gpus without link {}",
                                    engine_, whole_.RankOf(whole_.link(path.front()).from)->value,
                                    whole_.RankOf(whole_.link(path.back()).to)->value,
                                    whole_.LinkName(lost)));
  }

  void AddRow(std::span<const LinkId> path, size_t begin, size_t end, double bytes) {
    const size_t lead = begin > 0 && !damage_.IsDamaged(path[begin - 1]) ? 1 : 0;
    const PathId id = row_links_.Intern(path.subspan(begin - lead, end - begin + lead));
    if (id.index() == rows_.size())
      rows_.push_back({whole_.link(path[begin]).from, whole_.link(path[end - 1]).to, lead > 0, 0});
    rows_[id.index()].bytes += bytes;
    for (size_t i = begin; i < end; ++i) load_[path[i].index()] -= bytes;
  }

  // Returns the seconds after which the last of these links has carried its load and `more_bytes`.
  double SecondsOf(std::span<const LinkId> links, double more_bytes) const {
    double most = 0;
    for (const LinkId l : links)
      most = std::max(most, (load_[l.index()] + more_bytes) /
                                static_cast<double>(machine_.link(l).bandwidth_bytes_per_s));
    return most;
  }

  // Sets `links` to a translate of a path of the columns from src to dst, or of one from dst to src,
  // reversed. Returns false if there is neither.
  bool FindEitherWay(const PathsBetween& columns, Rank src, Rank dst, std::vector<LinkId>& links) const {
    if (columns.FindTranslate(src, dst, links)) return true;
    if (!columns.FindTranslate(dst, src, links)) return false;
    std::ranges::reverse(links);
    for (LinkId& l : links) {
      const Link& link = whole_.link(l);
      const std::span<const LinkId> out = whole_.Out(link.to);
      const auto back = std::ranges::find_if(out, [&](LinkId o) { return whole_.link(o).to == link.from; });
      if (back == out.end()) return false;
      l = *back;
    }
    return true;
  }

  // Returns the way whose links are done first. Requires: there is a way.
  const std::vector<LinkId>& Lightest(const Ways& ways, double bytes) const {
    return *std::ranges::min_element(
        ways, {}, [&](const std::vector<LinkId>& links) { return SecondsOf(links, bytes); });
  }

  // Leads a path around its lost links. Returns false if there is no way around one of them.
  bool Mend(std::vector<LinkId>& path, int64_t bytes) {
    for (size_t i = 0; i < path.size();) {
      if (!IsLost(path[i])) {
        ++i;
        continue;
      }
      const Reach reach = ReachOf(path, i);
      if (reach.longer == WayFinder::kNone) return false;
      const auto begin = path.begin() + static_cast<std::ptrdiff_t>(i - reach.before);
      const auto end = path.begin() + static_cast<std::ptrdiff_t>(i + reach.after + 1);
      const std::vector<LinkId>& way =
          Lightest(finder_.Between(whole_.link(*begin).from, whole_.link(*(end - 1)).to).ways,
                   static_cast<double>(bytes));
      i += way.size() - reach.before;
      path.insert(path.erase(begin, end), way.begin(), way.end());
    }
    CutLoops(whole_, path);
    return true;
  }

  void ChooseWays() {
    std::vector<size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t r) { return rows_[r].bytes; });
    PathTable row_rests;
    std::map<int32_t, std::span<const LinkId>> rest;  // by path of row_rests: its way
    for (const size_t r : order) {
      const Row& row = rows_[r];
      const std::span<const LinkId> links = row_links_[PathId(static_cast<int64_t>(r))];
      const std::span<const LinkId> replaced = links.subspan(row.has_lead ? 1 : 0);
      std::span<const LinkId> best;
      double least = std::numeric_limits<double>::infinity();
      const bool stays = std::ranges::none_of(replaced, [&](LinkId l) { return IsLost(l); });
      if (stays) {
        best = replaced;
        least = SecondsOf(replaced, row.bytes);
      }
      for (const std::vector<LinkId>& way : finder_.Between(row.from, row.to).ways) {
        const double seconds = SecondsOf(way, row.bytes);
        if (seconds >= least) continue;
        least = seconds;
        best = way;
      }
      for (const LinkId l : best) load_[l.index()] += row.bytes;
      if (best.data() == replaced.data()) continue;
      Detour& detour = schedule_.detours.emplace_back();
      detour.links.assign(links.begin(), links.end());
      if (row.has_lead) detour.by.push_back(links.front());
      detour.by.insert(detour.by.end(), best.begin(), best.end());
      // If the detour of an earlier row replaces the lead, this detour does not match. The row without its
      // lead then needs a detour, too.
      if (row.has_lead && !stays) rest.try_emplace(row_rests.Intern(replaced).value, best);
    }
    for (const auto& [id, way] : rest) {
      const std::span<const LinkId> replaced = row_rests[PathId(id)];
      schedule_.detours.push_back({{replaced.begin(), replaced.end()}, {way.begin(), way.end()}});
    }
  }

  Status LeadTheRest() {
    const Detours detours(whole_, missing_, schedule_.detours);
    std::vector<Detour> more;
    std::vector<LinkId> before;
    Status status = OkStatus();
    bool passes_lost = false;
    for (const EndLinks ends : {EndLinks::kCut, EndLinks::kKept}) {
      ForEachDamaged(
          kinds_, {}, detours, missing_, whole_, group_, ends, [&](std::vector<LinkId>& path, double) {
            before = path;
            detours.Apply(path);
            const auto lost = std::ranges::find_if(path, [&](LinkId l) { return IsLost(l); });
            if (!status.ok() || lost == path.end()) return;
            passes_lost = true;
            if (ends == EndLinks::kCut) return;
            const Ways& ways =
                finder_.Between(whole_.link(before.front()).from, whole_.link(before.back()).to).ways;
            if (ways.empty())
              status = NoWay(before, *lost);
            else
              more.push_back({before, ways.front()});
          });
      if (!passes_lost) break;
    }
    std::ranges::move(more, std::back_inserter(schedule_.detours));
    return status;
  }

  Schedule& schedule_;
  const MissingLinks& missing_;
  const Topology& machine_;
  const Topology& whole_;
  const SymmetryGroup& group_;
  const std::string_view engine_;
  const Detours damage_;
  WayFinder finder_;
  const PathKinds kinds_;
  std::vector<double> bytes_;  // by kind of paths: those of each translate
  std::vector<double> load_;   // by link, in bytes
  PathTable row_links_;
  std::vector<Row> rows_;                     // by path of row_links_
  std::unordered_map<int32_t, Reach> reach_;  // by damaged link
};

}  // namespace

SymmetryGroup TranslationsOfWhole(const Topology& whole, const MissingLinks& missing) {
  const Renumbered ordered = InOrder(whole, missing);
  const SymmetryGroup group = TurnSwitches(ordered.topology, FindTranslations(ordered.topology));
  std::vector<NodeId> node(ordered.node.size(), NodeId(0));  // by node of `ordered`: its number in `whole`
  for (size_t n = 0; n < node.size(); ++n) node[ordered.node[n].index()] = NodeId(static_cast<int64_t>(n));
  std::vector<Automorphism> generators = group.generators();
  for (Automorphism& g : generators) {
    const std::vector<NodeId> image = g.image;
    for (size_t n = 0; n < node.size(); ++n) g.image[n] = node[image[ordered.node[n].index()].index()];
  }
  // Translations do not depend on how nodes are numbered.
  return SymmetryGroup::Create(whole, std::move(generators)).value();
}

Status LeadAround(Schedule& schedule, const MissingLinks& missing, const Topology& machine,
                  const Topology& whole, const SymmetryGroup& group, const Collective& collective,
                  int64_t size_bytes, std::string_view engine) {
  Around around(schedule, missing, machine, whole, group, engine);
  if (missing.hosts.empty()) return around.Lead(CollectiveSizes(collective, size_bytes));
  XCCL_ASSIGN_OR_RETURN(const Collective of_whole, WholeOf(missing, collective, whole));
  const CollectiveSizes sizes(of_whole, WholeSizeBytes(collective, of_whole, size_bytes));
  schedule.missing = missing;
  XCCL_ASSIGN_OR_RETURN(const Translations translations, Translations::Create(schedule, collective, machine));
  if (translations.of_pairs()) {
    if (const std::optional<LostRelay> found = FindLostRelay(schedule, translations, whole)) {
      const size_t lost =
          whole.HostOf(found->lost).index() + missing.hosts.size() - static_cast<size_t>(whole.num_hosts());
      return InvalidInput(fmt::format(
          "{}: the lost host like {} would pass on what other hosts send to each other; expected lost hosts "
          "that pass on their own data alone in an alltoall",
          engine, machine.spec().hosts[missing.hosts[lost].index()].name));
    }
    return around.Lead(sizes);
  }
  XCCL_RETURN_IF_ERROR(around.Lead(sizes));
  return around.FindWays(translations, sizes);
}

}  // namespace xccl
