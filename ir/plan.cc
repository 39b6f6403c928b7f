// Each part of a plan has its own JSON code; this file combines them. Reading checks the format first, then
// the topology, since everything else refers to it.
#include "ir/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <sstream>
#include <utility>

#include "base/file_kinds.h"
#include "base/files.h"
#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "ir/collective_json.h"
#include "ir/plan_text.h"
#include "ir/program_json.h"
#include "ir/schedule_json.h"
#include "ir/translated.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

constexpr int64_t kFormat = 1;

void WriteMadeBy(const MadeBy& made_by, JsonWriter& writer) {
  writer.BeginObject();
  writer.Member("engine", made_by.engine);
  writer.Member("seed", made_by.seed);
  writer.Member("limits", made_by.limits);
  writer.Member("version", made_by.version);
  writer.Member("size_bytes", made_by.size_bytes);
  writer.Member("model", ToString(made_by.model));
  if (!made_by.machine.empty()) writer.Member("machine", made_by.machine);
  writer.EndObject();
}

StatusOr<MadeBy> ReadMadeBy(const JsonValue& value) {
  XCCL_RETURN_IF_ERROR(
      value.CheckKeys({"engine", "seed", "limits", "version", "size_bytes", "model", "machine"}));
  MadeBy made_by;
  const auto text = [&](std::string_view key, std::string& out) -> Status {
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> found, value.Find(key));
    if (!found) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(out, found->String());
    return OkStatus();
  };
  XCCL_RETURN_IF_ERROR(text("engine", made_by.engine));
  XCCL_RETURN_IF_ERROR(text("limits", made_by.limits));
  XCCL_RETURN_IF_ERROR(text("version", made_by.version));
  XCCL_RETURN_IF_ERROR(text("machine", made_by.machine));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> seed, value.Find("seed"));
  if (seed) {
    XCCL_ASSIGN_OR_RETURN(made_by.seed, seed->Unsigned());
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> size, value.Find("size_bytes"));
  if (size) {
    XCCL_ASSIGN_OR_RETURN(made_by.size_bytes, size->Integer(0, std::numeric_limits<int64_t>::max()));
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> model, value.Find("model"));
  if (model) {
    XCCL_ASSIGN_OR_RETURN(const std::string_view name, model->String());
    const StatusOr<TimeModel> known = ParseTimeModel(name);
    if (!known.ok()) return model->Error(known.status().message());
    made_by.model = *known;
  }
  return made_by;
}

StatusOr<PlanSizes> ReadSizes(const JsonValue& value) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys({"min_bytes", "max_bytes"}));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  PlanSizes sizes;
  XCCL_ASSIGN_OR_RETURN(sizes.min_bytes, value.GetInteger("min_bytes", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> most, value.Find("max_bytes"));
  if (most) {
    XCCL_ASSIGN_OR_RETURN(sizes.max_bytes, most->Integer(std::max<int64_t>(1, sizes.min_bytes), kMost));
  }
  return sizes;
}

void WriteSizes(const PlanSizes& sizes, JsonWriter& writer) {
  writer.BeginObject();
  writer.Member("min_bytes", sizes.min_bytes);
  if (sizes.max_bytes > 0) writer.Member("max_bytes", sizes.max_bytes);
  writer.EndObject();
}

Status CheckFormat(const JsonValue& root) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue format, root.Get("format"));
  XCCL_ASSIGN_OR_RETURN(const int64_t version, format.Integer(0, std::numeric_limits<int64_t>::max()));
  if (version == kFormat) return OkStatus();
  return format.Error(fmt::format("version {}; this program reads version {}", version, kFormat));
}

StatusOr<Plan> ReadPlanJson(const JsonValue& root, const std::string& file) {
  XCCL_RETURN_IF_ERROR(CheckFormat(root));
  XCCL_RETURN_IF_ERROR(root.CheckKeys(
      {"format", "topology", "collective", "schedule", "program", "bitwise_same", "sizes", "made_by"}));
  XCCL_ASSIGN_OR_RETURN(const std::string_view xml, root.GetString("topology"));
  XCCL_ASSIGN_OR_RETURN(Topology topology, ReadNativeXml(xml, file + ": topology"));
  XCCL_ASSIGN_OR_RETURN(const JsonValue collective_value, root.Get("collective"));
  XCCL_ASSIGN_OR_RETURN(Collective collective, ReadCollectiveJson(collective_value, topology.num_ranks()));
  XCCL_ASSIGN_OR_RETURN(const JsonValue schedule_value, root.Get("schedule"));
  XCCL_ASSIGN_OR_RETURN(Schedule schedule, ReadScheduleJson(schedule_value, topology));
  std::optional<LoweredProgram> program;
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> program_value, root.Find("program"));
  if (program_value) {
    XCCL_ASSIGN_OR_RETURN(program, ReadProgramJson(*program_value, collective));
    const int32_t ranks = static_cast<int32_t>(program->program.ranks.size());
    if (ranks != topology.num_ranks())
      return program_value->Error(
          fmt::format("{} ranks; expected {}, those of the topology", ranks, topology.num_ranks()));
  }
  std::optional<bool> bitwise_same;
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> claim, root.Find("bitwise_same"));
  if (claim) {
    XCCL_ASSIGN_OR_RETURN(bitwise_same, claim->Bool());
  }
  PlanSizes sizes;
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> sizes_value, root.Find("sizes"));
  if (sizes_value) {
    XCCL_ASSIGN_OR_RETURN(sizes, ReadSizes(*sizes_value));
  }
  MadeBy made_by;
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> made_by_value, root.Find("made_by"));
  if (made_by_value) {
    XCCL_ASSIGN_OR_RETURN(made_by, ReadMadeBy(*made_by_value));
  }
  return Plan{std::move(topology),
              std::move(collective),
              std::move(schedule),
              std::move(program),
              std::move(made_by),
              bitwise_same,
              sizes};
}

void Write(const Plan& plan, std::ostream& out) {
  JsonWriter writer(out);
  writer.BeginObject(JsonWriter::Layout::kLines);
  writer.Member("format", kFormat);
  writer.Member("topology", WriteNativeXml(plan.topology));
  writer.Key("collective");
  WriteCollectiveJson(plan.collective, writer);
  writer.Key("schedule");
  WriteScheduleJson(plan.schedule, plan.topology, writer);
  if (plan.program) {
    writer.Key("program");
    WriteProgramJson(*plan.program, plan.collective, writer);
  }
  if (plan.bitwise_same) writer.Member("bitwise_same", *plan.bitwise_same);
  if (plan.sizes != PlanSizes()) {
    writer.Key("sizes");
    WriteSizes(plan.sizes, writer);
  }
  writer.Key("made_by");
  WriteMadeBy(plan.made_by, writer);
  writer.EndObject();
  writer.Finish();
}

}  // namespace

std::string PlanText(const Plan& plan) {
  std::ostringstream out;
  Write(plan, out);
  return std::move(out).str();
}

StatusOr<Plan> ParsePlanUnverified(std::string_view text, const std::string& place) {
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, place));
  return ReadPlanJson(document.root(), place);
}

Status WritePlan(const Plan& plan, const std::string& path, int64_t most_transfers) {
  // The plain form is easier to read for other tools, unless it is huge.
  if (!plan.schedule.symmetry.empty()) {
    const int64_t most =
        std::min(most_transfers, plan.program ? MostTransfersOn(plan.topology) : kFewTransfers);
    StatusOr<Schedule> plain = Expand(plan.schedule, plan.collective, plan.topology, most);
    if (plain.ok())
      return WritePlan({plan.topology, plan.collective, *std::move(plain), plan.program, plan.made_by,
                        plan.bitwise_same, plan.sizes},
                       path);
  }
  return WriteFileAtomically(path, [&](std::ostream& out) {
    Write(plan, out);
    return OkStatus();
  });
}

StatusOr<Plan> ReadPlanUnverified(const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(std::string text, ReadFileOfKind(path, FileKind::kPlan));
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, path));
  text = std::string();
  return ReadPlanJson(document.root(), path);
}

}  // namespace xccl
