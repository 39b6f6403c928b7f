// Whole pieces: what is left over after rounding down goes, part by part, to the route that crowds its links
// least, where a link's crowding grows exponentially as its load nears the flow's; then some sweeps move
// single pieces while the sum of that falls.
#include "synth/flow/routes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace xccl {
namespace {

constexpr double kSteepness =
    60;                           // of crowding: a link twice as busy as the flow's busiest counts e^60 times
constexpr double kSteepUpTo = 5;  // times as busy; from there on straight, within what a double holds
constexpr int32_t kSweeps = 6;
constexpr double kGains = 1e-12;

// busy: time of a link ÷ time of the flow's busiest.
double CrowdingOf(double busy) {
  if (busy <= kSteepUpTo) return std::exp(kSteepness * (busy - 1));
  return std::exp(kSteepness * (kSteepUpTo - 1)) * (1 + kSteepness * (busy - kSteepUpTo));
}

}  // namespace

Routes::Routes(const FlowProblem& problem, const ConcurrentFlow& flow)
    : problem_(problem), aim_s_(flow.load_s), load_(problem.share.size()) {
  const Topology& topology = *problem.topology;
  std::vector<std::vector<const FlowTree*>> trees(problem.demands.sources.size());
  for (const FlowTree& tree : flow.trees) trees[static_cast<size_t>(tree.source)].push_back(&tree);
  for (size_t s = 0; s < trees.size(); ++s) {
    const NodeId source(problem.demands.sources[s]);
    for (const Demands::To& to : problem.demands.to[s]) {
      RoutedPart part{.source = *topology.RankOf(source),
                      .destination = *topology.RankOf(NodeId(to.node)),
                      .part = to.part,
                      .bytes = to.bytes,
                      .routes = {}};
      for (const FlowTree* tree : trees[s]) {
        std::vector<LinkId> links;
        for (NodeId at(to.node); at != source; at = topology.link(links.back()).from)
          links.push_back(tree->into[at.index()]);
        std::reverse(links.begin(), links.end());
        auto same = std::ranges::find(part.routes, links, &Route::links);
        if (same == part.routes.end()) same = part.routes.insert(same, {.links = std::move(links)});
        same->flow += tree->weight;
      }
      parts_.push_back(std::move(part));
    }
  }
}

void Routes::Load(const Route& route, double bytes) {
  for (const LinkId l : route.links) {
    const auto o = static_cast<size_t>(problem_.orbit[l.index()]);
    load_[o] += bytes * problem_.share[o];
  }
}

// How much more crowded the links of a route become by so many bytes more. A link that a route crosses
// several times over, because its orbit does, counts as often.
double Routes::Crowding(const Route& route, double bytes) const {
  double crowding = 0;
  for (const LinkId l : route.links) {
    const auto o = static_cast<size_t>(problem_.orbit[l.index()]);
    const double full = problem_.capacity[o] * aim_s_;
    const double before = load_[o] / full, after = (load_[o] + bytes * problem_.share[o]) / full;
    crowding += CrowdingOf(after) - CrowdingOf(before);
  }
  return crowding;
}

double Routes::Busiest() const {
  double seconds = 0;
  for (size_t o = 0; o < load_.size(); ++o) seconds = std::max(seconds, load_[o] / problem_.capacity[o]);
  return seconds;
}

double Routes::ShareOut(int32_t pieces) {
  std::fill(load_.begin(), load_.end(), 0);
  const auto best_of = [&](std::vector<Route>& routes, double bytes) {
    Route* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (Route& route : routes) {
      const double crowding = Crowding(route, bytes);
      if (crowding < least) least = crowding, best = &route;
    }
    return best;
  };
  for (RoutedPart& part : parts_) {
    for (Route& route : part.routes) {
      route.pieces = static_cast<int32_t>(std::floor(route.flow * pieces + 1e-6));
      Load(route, route.pieces * (part.bytes / pieces));
    }
  }
  for (RoutedPart& part : parts_) {
    int32_t left = pieces;
    for (const Route& route : part.routes) left -= route.pieces;
    for (; left > 0; --left) {
      Route* route = best_of(part.routes, part.bytes / pieces);
      ++route->pieces;
      Load(*route, part.bytes / pieces);
    }
  }
  for (int32_t sweep = 0; sweep < kSweeps && Busiest() > aim_s_; ++sweep) {
    bool moved = false;
    for (RoutedPart& part : parts_) {
      if (part.routes.size() == 1) continue;
      const double bytes = part.bytes / pieces;
      for (Route& from : part.routes) {
        if (from.pieces == 0) continue;
        Load(from, -bytes);
        const double stays = Crowding(from, bytes);
        Route* to = best_of(part.routes, bytes);
        if (to == &from || Crowding(*to, bytes) >= stays * (1 - kGains)) {
          Load(from, bytes);
          continue;
        }
        --from.pieces;
        ++to->pieces;
        Load(*to, bytes);
        moved = true;
      }
    }
    if (!moved) break;
  }
  return Busiest();
}

}  // namespace xccl
