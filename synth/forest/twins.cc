// The roles are numbered by a phase from 0 to 1. At phase x a class of g ranks is turned by floor(x × g), so
// that over all phases each takes each place for as long. What one root sends, or nobody's in particular,
// goes through all phases once or more, tree by tree. With many roots a class' first rank is replaced by its
// j-th for the phases from j/g to (j + 1)/g, and so its trees turn as all others do.
#include "synth/forest/twins.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace xccl::forest {
namespace {

// What tells a rank's link from another's.
using LinkKind = std::tuple<bool, int32_t, int64_t, int64_t, int64_t>;

constexpr double kSame = 1e-9;  // phases this close are one
constexpr double kRoom = 16;    // times the least piece: as long pieces are on average where each tree turns

}  // namespace

Twins::Twins(const Topology& topology, std::span<const Rank> members, std::optional<Rank> alone)
    : members_(members.begin(), members.end()),
      place_(static_cast<size_t>(topology.num_ranks()), {-1, 0}),
      links_(static_cast<size_t>(topology.num_ranks())),
      owner_(static_cast<size_t>(topology.num_links()), Rank(-1)),
      turn_(owner_.size(), 0),
      orbit_(owner_.size(), -1) {
  std::map<std::vector<LinkKind>, int32_t> known;
  for (const Rank r : members_) {
    const NodeId node = topology.NodeOf(r);
    std::vector<std::pair<LinkKind, LinkId>> links;
    bool by_switches = r != alone;
    for (const bool out : {false, true})
      for (const LinkId l : out ? topology.Out(node) : topology.In(node)) {
        const Link& link = topology.link(l);
        const NodeId other = out ? link.to : link.from;
        by_switches &= !topology.IsGpu(other);
        links.push_back(
            {{out, other.value, link.bandwidth_bytes_per_s, link.latency_ps, link.overhead_ps}, l});
      }
    std::ranges::stable_sort(links, {}, [](const auto& link) { return link.first; });
    std::vector<LinkKind> kinds;
    for (const auto& [kind, l] : links) {
      kinds.push_back(kind);
      links_[r.index()].push_back(l);
    }
    const auto next = static_cast<int32_t>(classes_.size());
    const int32_t own = by_switches ? known.try_emplace(std::move(kinds), next).first->second : next;
    if (own == next) classes_.emplace_back();
    std::vector<Rank>& all = classes_[static_cast<size_t>(own)];
    place_[r.index()] = {own, static_cast<int32_t>(all.size())};
    all.push_back(r);
  }
  for (const std::vector<Rank>& all : classes_) {
    if (all.size() == 1) continue;
    for (size_t k = 0; k < links_[all[0].index()].size(); ++k, ++num_orbits_) {
      share_.push_back(1 / static_cast<double>(all.size()));
      for (const Rank r : all) {
        const LinkId l = links_[r.index()][k];
        owner_[l.index()] = r;
        turn_[l.index()] = static_cast<int32_t>(k);
        orbit_[l.index()] = static_cast<int32_t>(num_orbits_);
      }
    }
  }
  for (int32_t& orbit : orbit_) {
    if (orbit >= 0) continue;
    orbit = static_cast<int32_t>(num_orbits_++);
    share_.push_back(1);
  }
}

void Twins::Take(PackingProblem& problem, bool many_roots) const {
  problem.orbit = orbit_;
  problem.share = share_;
  if (!many_roots) return;
  problem.roots.clear();
  problem.demand.clear();
  for (const std::vector<Rank>& all : classes_) {
    problem.roots.push_back(all[0]);
    problem.demand.push_back(static_cast<double>(all.size()) / static_cast<double>(members_.size()));
  }
}

// Classes whose members do different things in the tree, so that roles matter.
std::vector<bool> Twins::UnlikeClasses(const FractionalPacking& packing, const FractionalTree& tree) const {
  std::vector<std::vector<int32_t>> uses(links_.size());
  for (const auto* const arcs : {&tree.arcs, &tree.up})
    for (const PackedArc& arc : *arcs)
      for (const LinkId l : packing.Links(arc)) {
        if (owner_[l.index()].value < 0) continue;
        std::vector<int32_t>& own = uses[owner_[l.index()].index()];
        own.resize(links_[owner_[l.index()].index()].size());
        ++own[static_cast<size_t>(turn_[l.index()])];
      }
  std::vector<bool> unlike(classes_.size(), false);
  for (size_t c = 0; c < classes_.size(); ++c)
    for (const Rank r : classes_[c]) unlike[c] = unlike[c] || uses[r.index()] != uses[classes_[c][0].index()];
  return unlike;
}

bool Twins::HasRoomFor(int64_t trees, double least) const {
  int64_t roles = 0;
  for (const std::vector<Rank>& all : classes_)
    roles += static_cast<int64_t>(all.size() > 1 ? all.size() : 0);
  return kRoom * least * static_cast<double>(trees * roles) <= 1;
}

std::vector<double> Twins::Cuts(const std::vector<bool>& turns, Phases phases, size_t roots,
                                double least) const {
  std::vector<double> all;
  for (size_t c = 0; c < classes_.size(); ++c) {
    if (!turns[c]) continue;
    const auto size = static_cast<double>(classes_[c].size());
    for (double k = std::floor(phases.begin * size) + 1; k / size < phases.end - kSame; ++k)
      all.push_back(k / size);
  }
  std::ranges::sort(all);
  // Cuts between roots stay where each root has trees of its own.
  const auto is_of_root = [&](double x) {
    const double turn = x * static_cast<double>(roots);
    return roots > 0 && std::abs(turn - std::round(turn)) < kSame;
  };
  std::vector<double> cuts;
  double begin = phases.begin;
  for (const double cut : all) {
    const bool is_short = cut - begin < least, of_root = is_of_root(cut);
    if (cut - begin < kSame || (is_short && !of_root)) continue;
    if (is_short && !cuts.empty() && !is_of_root(cuts.back())) cuts.pop_back();
    cuts.push_back(cut);
    begin = cut;
  }
  if (!cuts.empty() && phases.end - begin < least && !is_of_root(cuts.back())) cuts.pop_back();
  cuts.push_back(phases.end);
  return cuts;
}

Rank Twins::Turned(Rank r, double phase) const {
  const Place place = PlaceOf(r);
  if (place.of < 0) return r;
  const std::vector<Rank>& all = classes_[static_cast<size_t>(place.of)];
  const auto by = static_cast<size_t>(phase * static_cast<double>(all.size()));
  return all[(static_cast<size_t>(place.at) + by) % all.size()];
}

std::vector<PackedArc> Twins::Turned(const FractionalPacking& packing, std::span<const PackedArc> arcs,
                                     double phase, std::vector<LinkId>& links) const {
  std::vector<PackedArc> copies(arcs.begin(), arcs.end());
  for (PackedArc& arc : copies) {
    const std::span<const LinkId> own = packing.Links(arc);
    arc.from = Turned(arc.from, phase);
    arc.to = Turned(arc.to, phase);
    arc.first_link = static_cast<int32_t>(links.size());
    for (const LinkId l : own) {
      const Rank owner = owner_[l.index()];
      links.push_back(
          owner.value < 0 ? l : links_[Turned(owner, phase).index()][static_cast<size_t>(turn_[l.index()])]);
    }
  }
  return copies;
}

FractionalPacking Twins::InTurn(const FractionalPacking& packing, std::span<const Rank> roots,
                                bool many_roots, double least) const {
  FractionalPacking made{
      .trees = {}, .links = {}, .s_per_byte = packing.s_per_byte, .rounds = packing.rounds};
  const bool has_room = HasRoomFor(static_cast<int64_t>(packing.trees.size()), least);
  double before = 0;  // phases of the trees before
  for (const FractionalTree& tree : packing.trees) {
    const bool has_own_roots = many_roots && tree.up.empty();
    const size_t root_class = static_cast<size_t>(PlaceOf(roots[static_cast<size_t>(tree.root)]).of);
    const size_t twins = classes_[root_class].size();
    std::vector<bool> turning = UnlikeClasses(packing, tree);
    turning[root_class] = true;
    // Each tree goes through all phases, or, where the pieces would be short, they share them.
    const Phases phases = has_own_roots || has_room ? Phases{0, 1} : Phases{before, before + tree.weight};
    const double of_a_phase = tree.weight / (phases.end - phases.begin);
    const double share = has_own_roots
                             ? of_a_phase * static_cast<double>(twins) / static_cast<double>(members_.size())
                             : of_a_phase;
    double begin = phases.begin;
    for (const double end : Cuts(turning, phases, has_own_roots ? twins : 0, least / share)) {
      const double phase = (begin + end) / 2;
      FractionalTree& copy = made.trees.emplace_back();
      copy.latency_ps = tree.latency_ps;
      copy.weight = of_a_phase * (end - begin) * (has_own_roots ? static_cast<double>(twins) : 1);
      if (many_roots)
        copy.root = static_cast<int32_t>(
            std::ranges::find(members_, Turned(roots[static_cast<size_t>(tree.root)], phase)) -
            members_.begin());
      copy.arcs = Turned(packing, tree.arcs, phase, made.links);
      copy.up = Turned(packing, tree.up, phase, made.links);
      begin = end;
    }
    before = phases.end;
  }
  return made;
}

}  // namespace xccl::forest
