#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "pipeline/view/comparison.h"
#include "pipeline/view/engine_lines.h"
#include "pipeline/view/machine_data.h"
#include "pipeline/view/writer.h"

namespace xccl {
namespace {

void WriteLine(const EngineLine& line, JsonWriter& json) {
  json.BeginObject();
  json.Member("name", line.name);
  json.Member("group", std::string(ToString(line.group)));
  json.Member("leads", line.leads);
  json.Member("on_front", line.on_front);
  view::Column(json, "size_bytes", line.points, [](const TimedPlan& point) { return point.size_bytes; });
  view::Column(json, "time_ps", line.points, [](const TimedPlan& point) { return point.time_ps; });
  view::Column(json, "bound_ps", line.points, [](const TimedPlan& point) { return point.bound_ps; });
  json.Key("busbw");
  json.BeginArray();
  for (const TimedPlan& point : line.points) json.Number(point.busbw_bytes_per_s);
  json.EndArray();
  json.Key("made_by");
  json.BeginArray();
  for (const TimedPlan& point : line.points) json.String(point.made_by);
  json.EndArray();
  json.EndObject();
}

void WriteGroups(const std::vector<EngineLine>& lines, JsonWriter& json) {
  json.BeginArray();
  for (const EngineGroup group : {EngineGroup::kAuto, EngineGroup::kSearches, EngineGroup::kSwitches,
                                  EngineGroup::kTrees, EngineGroup::kExchanges, EngineGroup::kOthers}) {
    if (std::ranges::none_of(lines, [&](const EngineLine& line) { return line.group == group; })) continue;
    json.BeginObject();
    json.Member("name", std::string(ToString(group)));
    json.Member("label", std::string(LabelOf(group)));
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string ComparisonPage(std::string_view page, const Comparison& comparison, const Topology& topology,
                           const Collective& collective, const std::string& command) {
  const std::vector<EngineLine> lines = EngineLines(comparison);
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject();
  json.Member("format", int64_t{1});
  json.Member("version", std::string(kVersion));
  json.Member("command", command);
  json.Member("collective", comparison.on.collective);
  json.Member("ranks", collective.num_members());
  json.Member("model", comparison.on.model);
  json.Member("machine", comparison.on.machine);
  json.Key("groups");
  WriteGroups(lines, json);
  json.Key("engines");
  json.BeginArray();
  for (const EngineLine& line : lines) WriteLine(line, json);
  json.EndArray();
  json.Member("left_out", comparison.left_out);
  view::WriteMachine(topology, json);
  json.EndObject();
  json.Finish();
  return view::WithData(page, view::InScript(std::move(out).str()));
}

}  // namespace xccl
