// 1. The constructor sorts the links of each member by kind. Ranks with equal kinds of links, none of which
//    leads to a GPU, form a class.
// 2. A phase from 0 to 1 says who has which role. At phase x the role of a rank in a class of g ranks is
//    taken by the rank floor(x × g) positions after it. Over all phases every rank takes every role for the
//    same time.
// 3. InTurn cuts each tree into pieces at the phases where roles change. Classes whose ranks all do the same
//    in the tree do not count. Each piece is a copy of the tree with the roles of one phase.
// 4. If pieces would be short, each tree goes only through a part of the phases, as long as its weight.
#include "synth/forest/twins.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "synth/common/cost_model.h"

namespace xccl::forest {
namespace {

// The properties in which links of two ranks are compared.
using LinkKind = std::tuple<bool, int32_t, int64_t, int64_t, int64_t>;

// Each tree goes through all phases if its pieces average at least this multiple of the least piece.
constexpr double kRoom = 16;

}  // namespace

Twins::Twins(const Topology& topology, std::span<const Rank> members, Rank root)
    : members_(members.size()),
      place_(static_cast<size_t>(topology.num_ranks()), {-1, 0}),
      links_(static_cast<size_t>(topology.num_ranks())),
      owner_(static_cast<size_t>(topology.num_links()), Rank(-1)),
      turn_(owner_.size(), 0),
      orbit_(owner_.size(), -1) {
  std::map<std::vector<LinkKind>, int32_t> known;
  for (const Rank r : members) {
    const NodeId node = topology.NodeOf(r);
    std::vector<std::pair<LinkKind, LinkId>> links;
    bool by_switches = r != root;
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

void Twins::Take(PackingProblem& problem) const {
  problem.orbit = orbit_;
  problem.share = share_;
}

// Returns, by class, whether its ranks do different things in the tree. Roles matter only in these classes.
std::vector<bool> Twins::UnlikeClasses(const FractionalPacking& packing, const FractionalTree& tree) const {
  std::vector<std::vector<int32_t>> uses(links_.size());
  for (const PackedArc& arc : tree.arcs)
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

std::vector<double> Twins::Cuts(const std::vector<bool>& turning, Phases phases, double least) const {
  std::vector<double> all;
  for (size_t c = 0; c < classes_.size(); ++c) {
    if (!turning[c]) continue;
    const auto size = static_cast<double>(classes_[c].size());
    for (double k = std::floor(phases.begin * size) + 1; k / size < phases.end - kRounding; ++k)
      all.push_back(k / size);
  }
  std::ranges::sort(all);
  std::vector<double> cuts;
  double begin = phases.begin;
  for (const double cut : all) {
    if (cut - begin < std::max(least, kRounding)) continue;
    cuts.push_back(cut);
    begin = cut;
  }
  if (!cuts.empty() && phases.end - begin < least) cuts.pop_back();
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

FractionalPacking Twins::InTurn(const FractionalPacking& packing, double least) const {
  FractionalPacking made{
      .trees = {}, .links = {}, .s_per_byte = packing.s_per_byte, .rounds = packing.rounds};
  const bool has_room = HasRoomFor(static_cast<int64_t>(packing.trees.size()), least);
  double before = 0;  // end of the phases of the tree before
  for (const FractionalTree& tree : packing.trees) {
    // Each tree goes through all phases. If pieces would be short, the trees share the phases instead.
    const Phases phases = has_room ? Phases{0, 1} : Phases{before, before + tree.weight};
    const double share = tree.weight / (phases.end - phases.begin);  // share of all data in phases 0 to 1
    double begin = phases.begin;
    for (const double end : Cuts(UnlikeClasses(packing, tree), phases, least / share)) {
      FractionalTree& copy = made.trees.emplace_back(tree);
      copy.weight = share * (end - begin);
      copy.arcs = Turned(packing, tree.arcs, (begin + end) / 2, made.links);
      begin = end;
    }
    before = phases.end;
  }
  return made;
}

}  // namespace xccl::forest
