// ShareOut works in three steps.
// 1. Each route gets its share in the flow, rounded down to whole pieces.
// 2. Each piece that remains goes to the route of its part that adds the least crowding.
// 3. Sweeps over all parts move single pieces to other routes where that lowers the sum of crowding.
// The crowding of a link is an exponential function of its time ÷ the time of the flow's busiest link.
#include "synth/flow/routes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace xccl {
namespace {

// The factor in the exponent of the crowding. A link that takes 5 % more time than the flow's busiest link
// has 20 times the crowding of that link. The busiest links therefore dominate the sum of crowding.
constexpr double kCongestionExponent = 60;
// The most sweeps. They end earlier if no piece moves or the busiest link takes no longer than in the flow.
constexpr int32_t kSweeps = 6;

// Returns the crowding of a link. busy: the link's time ÷ the time of the flow's busiest link. The function
// is exponential up to the square root of the largest double, and linear above, so that sums stay finite.
double CrowdingOf(double busy) {
  const double most = std::log(std::numeric_limits<double>::max()) / 2;
  const double exponent = kCongestionExponent * (busy - 1);
  return exponent <= most ? std::exp(exponent) : std::exp(most) * (1 + exponent - most);
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

// Returns the crowding that `bytes` more on the route add to its links. If a route crosses several links of
// one orbit, each link counts.
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
  // Loads are sums over all parts. Crowding multiplies the relative error of a load by the exponent.
  const double rounding =
      kCongestionExponent * std::numeric_limits<double>::epsilon() * static_cast<double>(parts_.size());
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
        if (to == &from || Crowding(*to, bytes) >= stays * (1 - rounding)) {
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
