// Turns a concurrent flow into routes. Input: weighted trees of cheapest paths (ir/bounds/concurrent_flow.h).
// Output: the distinct routes of each part that moves, and the number of the part's pieces on each route.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "ir/bounds/concurrent_flow.h"
#include "topologies/topology.h"

namespace xccl {

// One path of a part from source to destination. The links are in the order of travel.
struct Route {
  std::vector<LinkId> links;
  double flow = 0;     // share of the part that the flow sends over this route
  int32_t pieces = 0;  // pieces of the part that take this route, set by ShareOut
};

// A part that moves, and its routes. With symmetry, only parts of one source of each orbit are listed.
struct RoutedPart {
  Rank source, destination;
  PartId part;
  double bytes = 0;
  std::vector<Route> routes;
};

class Routes {
 public:
  // Lists the distinct routes of each part. Cost: demands × (trees of a source)² × links on a route, at most.
  Routes(const FlowProblem& problem, const ConcurrentFlow& flow);

  // Cuts every part into `pieces` equal pieces and gives each piece a route, so that links are loaded evenly.
  // Returns the busiest link's time in seconds. Deterministic.
  double ShareOut(int32_t pieces);

  std::span<const RoutedPart> parts() const { return parts_; }

 private:
  void Load(const Route& route, double bytes);
  double Crowding(const Route& route, double bytes) const;
  double Busiest() const;

  const FlowProblem& problem_;
  double aim_s_;  // the busiest link's time in the flow, in seconds
  std::vector<RoutedPart> parts_;
  std::vector<double> load_;  // by orbit of links: bytes on each link of the orbit
};

}  // namespace xccl
