#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/view/failures.h"
#include "pipeline/view/machine_data.h"
#include "pipeline/view/writer.h"

namespace xccl {
namespace {

void WriteTime(const std::optional<double>& us, JsonWriter& json) {
  if (us)
    json.Number(*us);
  else
    json.Null();
}

void WriteRow(const FailureTimes& row, JsonWriter& json) {
  json.BeginObject();
  json.Member("engine", row.engine);
  json.Member("size_bytes", row.size_bytes);
  json.Key("whole_us");
  WriteTime(row.whole_us, json);
  json.Key("draw_us");
  json.BeginArray();
  for (const std::optional<double>& us : row.draw_us) WriteTime(us, json);
  json.EndArray();
  json.EndObject();
}

void WriteBounds(const FailureBounds& bounds, JsonWriter& json) {
  json.BeginObject();
  json.Member("size_bytes", bounds.size_bytes);
  json.Key("whole_us");
  json.Number(bounds.whole_us);
  json.Key("draw_us");
  json.BeginArray();
  for (const double us : bounds.draw_us) json.Number(us);
  json.EndArray();
  json.EndObject();
}

}  // namespace

std::string FailuresPage(std::string_view page, const FailureComparison& comparison, const Topology& topology,
                         const Origin& origin) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject();
  json.Member("format", int64_t{1});
  json.Member("version", origin.version);
  json.Member("command", origin.command);
  json.Member("title", comparison.title);
  json.Member("collective", comparison.on.collective);
  json.Member("model", comparison.on.model);
  json.Member("failed", comparison.failed);
  json.Key("times");
  json.BeginArray();
  for (const FailureTimes& row : comparison.times) WriteRow(row, json);
  json.EndArray();
  json.Key("bounds");
  json.BeginArray();
  for (const FailureBounds& bounds : comparison.bounds) WriteBounds(bounds, json);
  json.EndArray();
  json.Member("left_out", comparison.skipped);
  view::WriteMachine(topology, json);
  json.EndObject();
  json.Finish();
  return view::WithData(page, view::InScript(std::move(out).str()));
}

}  // namespace xccl
