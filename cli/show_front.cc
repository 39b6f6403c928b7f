#include <fmt/core.h>

#include "cli/show.h"
#include "synth/smt/pareto.h"

namespace xccl {
namespace {

std::string Cost(const smt::FrontPoint& point) { return smt::ToText({point.rounds, point.chunks}); }

// "smt-unsat up to 12 chunks"
std::string Proof(const smt::FrontPoint& point) {
  const std::string by(smt::ToString(point.proved_by));
  return point.proved_chunks == 0 ? by : fmt::format("{} up to {} chunks", by, point.proved_chunks);
}

}  // namespace

std::vector<Row> FrontRows(const smt::Front& front) {
  std::vector<Row> rows;
  for (const smt::FrontPoint& point : front.points) {
    Cell proved_chunks;
    if (point.proved_chunks > 0) proved_chunks = int64_t{point.proved_chunks};
    rows.push_back({{"chunks", int64_t{point.chunks}},
                    {"steps", int64_t{point.steps}},
                    {"rounds", point.rounds},
                    {"cost", Cost(point)},
                    {"cost_value", static_cast<double>(point.rounds) / point.chunks},
                    {"bound", smt::ToText(point.bound)},
                    {"proved_by", std::string(smt::ToString(point.proved_by))},
                    {"proved_chunks", proved_chunks},
                    {"found_by", point.found_by},
                    {"seconds", point.seconds},
                    {"front_complete", front.complete}});
  }
  return rows;
}

std::string FrontText(const smt::Front& front) {
  std::vector<std::vector<std::string>> table = {
      {"chunks", "steps", "rounds", "R/C", "bound", "proved by", "found by", "seconds"}};
  for (const smt::FrontPoint& point : front.points)
    table.push_back({std::to_string(point.chunks), std::to_string(point.steps), std::to_string(point.rounds),
                     Cost(point), smt::ToText(point.bound), Proof(point), point.found_by,
                     fmt::format("{:.2f}", point.seconds)});
  std::string text = TableText(table);
  text += fmt::format("fewest steps {} by {}; fewest rounds a chunk {} by {}\n", front.least_steps,
                      smt::ToString(front.steps_by), smt::ToText(front.least_rounds),
                      smt::ToString(front.least_by));
  text += front.complete ? "complete: no number of chunks does better in as many steps\n"
                         : fmt::format("not complete: stopped by {}\n", front.stopped);
  return text;
}

}  // namespace xccl
