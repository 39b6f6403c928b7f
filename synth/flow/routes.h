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
  std::vector<LinkId> links;
  double flow = 0;     // share of the part in the flow
  int32_t pieces = 0;  // of the part, once shared out
};

// A part that moves.
struct RoutedPart {
  Rank source, destination;
  PartId part;
  double bytes = 0;
  std::vector<Route> routes;
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

 private:
  void Load(const Route& route, double bytes);
  double Crowding(const Route& route, double bytes) const;
  double Busiest() const;

  const FlowProblem& problem_;
  double aim_s_;  // of the flow
  std::vector<RoutedPart> parts_;
  std::vector<double> load_;  // by orbit, of each of its links
};

}  // namespace xccl
