// Pictures of an expert plan's routes: which way the rows of one rank go, for a drawn routing.
#pragma once

#include <string>

#include "dispatch/plan.h"

namespace xccl {

// The routes of rank 0's rows: domains as frames, ranks as circles, and a line for each branch, as wide as
// the share of the rank's tokens that take it. Tokens choose experts uniformly. Of many domains the first are
// drawn.
std::string RoutesSvg(const dispatch::ExpertPlan& plan);

// One HTML page that needs no network: what the plan is, and a picture for each rank of the first domain, up
// to eight.
std::string RoutesPage(const dispatch::ExpertPlan& plan);

}  // namespace xccl
