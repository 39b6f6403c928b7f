// From flows to routes: the routes on which each part travels, and how the part is shared between them. In:
// trees of shortest paths with weights (ir/bounds/concurrent_flow.h); out: for every part that moves, its
// distinct routes with whole weights, few pieces where few do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "ir/bounds/concurrent_flow.h"
#include "topologies/topology.h"

namespace xccl {

// A share of a part and the links that it crosses, in order.
struct Route {
  int32_t first_link = 0, num_links = 0;  // in Routes::links
  double flow = 0;                        // share of the part in the flow
  int32_t pieces = 0;                     // of Routes::pieces, once shared out
};

// A part that moves, from a source to a node.
struct RoutedPart {
  int32_t source = 0;                       // index into Demands::sources
  int32_t demand = 0;                       // index into Demands::to[source]
  int32_t first_route = 0, num_routes = 0;  // in Routes::routes
};

class Routes {
 public:
  // Equal routes of one part are one. Linear in trees × demands × links on a route.
  Routes(const FlowProblem& problem, const ConcurrentFlow& flow);

  // Shares every part out in `pieces` equal pieces, so that links are loaded as evenly as that allows: by the
  // flow as far as whole pieces go, the rest where it is least in the way, then exchanged while that helps.
  // Returns the busiest link's time in seconds. Deterministic.
  double ShareOut(int32_t pieces);

  std::span<const RoutedPart> parts() const { return parts_; }
  std::span<const Route> RoutesOf(const RoutedPart& part) const {
    return std::span(routes_).subspan(static_cast<size_t>(part.first_route),
                                      static_cast<size_t>(part.num_routes));
  }
  std::span<const LinkId> Links(const Route& route) const {
    return std::span(links_).subspan(static_cast<size_t>(route.first_link),
                                     static_cast<size_t>(route.num_links));
  }

 private:
  void AddRoute(RoutedPart& part, std::span<const LinkId> links, double flow);
  std::span<Route> MutableRoutesOf(const RoutedPart& part) {
    return std::span(routes_).subspan(static_cast<size_t>(part.first_route),
                                      static_cast<size_t>(part.num_routes));
  }
  void Load(const Route& route, double bytes);
  double Crowding(const Route& route, double bytes) const;
  double Busiest() const;

  const FlowProblem& problem_;
  double aim_s_;  // of the flow
  std::vector<RoutedPart> parts_;
  std::vector<Route> routes_;
  std::vector<LinkId> links_;
  std::vector<double> load_;  // by orbit, of each of its links
};

}  // namespace xccl
