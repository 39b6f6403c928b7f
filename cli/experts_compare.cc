// compare and view of expert dispatch and combine.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/experts.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "dispatch/report.h"
#include "dispatch/verify.h"
#include "draw/experts.h"

namespace xccl {
namespace {

constexpr double kRoutesOfPlan = 3;  // routes that are compared, for each that a plan is timed beside

// The table of one machine: a line for each route, the fastest first.
std::string ComparedText(const std::vector<dispatch::Facts>& rows) {
  std::vector<std::vector<std::string>> table = {
      {"route", "time us", "99 % us", "ratio", "ratio 99 %", "sums", "connections", "slots", ""}};
  const auto cell = [](const dispatch::Facts& facts, std::string_view name) -> const dispatch::Value& {
    return std::ranges::find(facts, name, &std::pair<std::string, dispatch::Value>::first)->second;
  };
  for (const dispatch::Facts& facts : rows) {
    const auto number = [&](std::string_view name, std::string_view form) {
      return fmt::format(fmt::runtime(form), std::get<double>(cell(facts, name)));
    };
    const bool planned = std::holds_alternative<std::string>(cell(facts, "sums"));
    table.push_back({std::get<std::string>(cell(facts, "route")), number("time_median_us", "{:.1f}"),
                     number("time_p99_us", "{:.1f}"), number("ratio_median", "{:.4f}"),
                     number("ratio_p99", "{:.4f}"),
                     planned ? std::get<std::string>(cell(facts, "sums")) : "-",
                     planned ? fmt::format("{}", std::get<int64_t>(cell(facts, "connections"))) : "-",
                     planned ? FormatSizeShort(std::get<int64_t>(cell(facts, "buffer_bytes"))) : "-",
                     std::get<bool>(cell(facts, "chosen")) ? "chosen" : ""});
  }
  return TableText(table);
}

}  // namespace

Status CompareExperts(const TopologiesFlags& machines, const std::string& collective,
                      const ExpertFlags& flags, uint64_t seed, const Session& session) {
  HintAtMemoryOfExperts();
  std::vector<Row> rows;
  for (const std::string& machine : machines.topologies) {
    XCCL_ASSIGN_OR_RETURN(const Topology topology, ReadTopology({machine, machines.load}, false));
    XCCL_ASSIGN_OR_RETURN(dispatch::PlanRequest request, ExpertRequestOf(topology, collective, flags, seed));
    const int32_t most = flags.draws.value_or(dispatch::DefaultDraws(request.sizes));
    SayLongDraws(topology.name(), request.sizes, most,
                 kRoutesOfPlan * dispatch::SecondsOfDraws(request.sizes, most), session);
    XCCL_ASSIGN_OR_RETURN(const dispatch::RouteComparison comparison,
                          WithProgress("comparing routes on " + topology.name(), [&](Progress& progress) {
                            request.progress = [&](const std::string& what) { progress.Say(what); };
                            return dispatch::CompareRoutes(topology, request, most, session.deadline);
                          }));
    const std::vector<dispatch::Facts> facts = dispatch::FactsOf(comparison, topology, request);
    for (const dispatch::Facts& of_route : facts) {
      rows.push_back(RowOf(of_route));
      rows.back().emplace_back("version", std::string(kVersion));
    }
    if (session.json) continue;
    const auto draws = static_cast<int64_t>(comparison.bounds_ps.size());
    XCCL_RETURN_IF_ERROR(
        Print(WorkText(topology.name(), request.call, request.sizes, flags.routing.value_or("uniform")) +
              fmt::format("{}{}; bound {} of the realised counts\n", Counted(draws, "draw"),
                          CopiesText(request.sizes.max_tokens / comparison.drawn_tokens),
                          FormatDurationShort(dispatch::Quantile(comparison.bounds_ps, 0.5))) +
              ComparedText(facts)));
  }
  session.is_writing = true;
  return session.json ? Print(ToJson(rows)) : OkStatus();
}

Status ViewExperts(const std::string& path, const std::string& output) {
  XCCL_ASSIGN_OR_RETURN(const dispatch::ExpertPlan plan, dispatch::ReadExpertPlan(path));
  const bool svg = output.ends_with(".svg");
  return WriteFileAtomically(output, svg ? RoutesSvg(plan) : RoutesPage(plan));
}

}  // namespace xccl
