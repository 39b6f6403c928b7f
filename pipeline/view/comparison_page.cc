#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/view/comparison.h"
#include "pipeline/view/engine_lines.h"
#include "pipeline/view/machine_data.h"
#include "pipeline/view/writer.h"

namespace xccl {
namespace {

// Writes a column of numbers, with null for each unknown number.
template <typename Number>
void WriteKnown(const char* key, const EngineLine& line, std::optional<Number> PlanTime::*value,
                JsonWriter& json) {
  json.Key(key);
  json.BeginArray();
  for (const PlanTime& point : line.points) {
    if (const std::optional<Number>& number = point.*value)
      json.Integer(*number);
    else
      json.Null();
  }
  json.EndArray();
}

void WriteLine(const EngineLine& line, JsonWriter& json) {
  json.BeginObject();
  json.Member("name", line.name);
  json.Member("group", std::string(ToString(line.group)));
  json.Member("leads", line.leads);
  json.Member("on_front", line.on_front);
  view::Column(json, "size_bytes", line.points, [](const PlanTime& point) { return point.size_bytes; });
  view::Column(json, "time_ps", line.points, [](const PlanTime& point) { return point.time_ps; });
  view::Column(json, "bound_ps", line.points, [](const PlanTime& point) { return point.bound_ps; });
  json.Key("busbw");
  json.BeginArray();
  for (const PlanTime& point : line.points) json.Number(point.busbw_bytes_per_s);
  json.EndArray();
  json.Key("made_by");
  json.BeginArray();
  for (const PlanTime& point : line.points) json.String(point.made_by);
  json.EndArray();
  if (!line.points.front().topology.empty()) json.Member("topology", line.points.front().topology);
  json.Member("measured", line.points.front().measured);
  WriteKnown("messages", line, &PlanTime::messages, json);
  WriteKnown("threadblocks", line, &PlanTime::threadblocks, json);
  json.EndObject();
}

void WriteMachineMembers(const ComparedMachine& machine, const Comparison& comparison, JsonWriter& json) {
  const auto own = std::ranges::find(comparison.machines, machine.name, &Compared::topology);
  json.Member("ranks", machine.collective->num_members());
  json.Member("machine", own == comparison.machines.end() ? comparison.on.machine : own->machine);
  view::WriteMachine(*machine.topology, json);
}

void WriteGroups(const std::vector<EngineLine>& lines, JsonWriter& json) {
  json.BeginArray();
  for (const EngineGroup group :
       {EngineGroup::kAuto, EngineGroup::kMachines, EngineGroup::kMeasured, EngineGroup::kSearches,
        EngineGroup::kSwitches, EngineGroup::kTrees, EngineGroup::kExchanges, EngineGroup::kOthers}) {
    if (std::ranges::none_of(lines, [&](const EngineLine& line) { return line.group == group; })) continue;
    json.BeginObject();
    json.Member("name", std::string(ToString(group)));
    json.Member("label", std::string(LabelOf(group)));
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string ComparisonPage(std::string_view page, const Comparison& comparison,
                           std::span<const ComparedMachine> machines, const Origin& origin) {
  const std::vector<EngineLine> lines = EngineLines(comparison);
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject();
  json.Member("format", int64_t{1});
  json.Member("version", origin.version);
  json.Member("command", origin.command);
  json.Member("collective", comparison.on.collective);
  json.Member("model", comparison.on.model);
  json.Key("groups");
  WriteGroups(lines, json);
  json.Key("engines");
  json.BeginArray();
  for (const EngineLine& line : lines) WriteLine(line, json);
  json.EndArray();
  json.Member("left_out", comparison.skipped);
  json.Member("notes", comparison.notes);
  if (machines.size() == 1) {
    WriteMachineMembers(machines[0], comparison, json);
  } else {
    json.Key("machines");
    json.BeginArray();
    for (const ComparedMachine& machine : machines) {
      json.BeginObject();
      json.Member("name", machine.name);
      WriteMachineMembers(machine, comparison, json);
      json.EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
  json.Finish();
  return view::WithData(page, view::InScript(std::move(out).str()));
}

}  // namespace xccl
