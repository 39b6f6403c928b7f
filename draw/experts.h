// Draws the routes of an expert plan: which way the rows of one rank go, for a drawn routing.
#pragma once

#include <string>

#include "dispatch/plan.h"

namespace xccl {

// Returns an SVG of the routes of rank 0's rows: domains as frames, ranks as circles, and a line for each
// branch. The width of a line is the share of the rank's tokens that take the branch. Tokens choose experts
// uniformly. If there are many domains, only the first are drawn.
std::string RoutesSvg(const dispatch::ExpertPlan& plan);

// Returns an HTML page that needs no network. It says what the plan is, and has a picture for each rank of
// the first domain, for up to eight ranks.
std::string RoutesPage(const dispatch::ExpertPlan& plan);

}  // namespace xccl
