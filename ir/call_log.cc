#include "ir/call_log.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <utility>

#include "base/file_kinds.h"
#include "base/json/json_value.h"
#include "base/json/json_writer.h"

namespace xccl {
namespace {

constexpr int64_t kFormat = 1;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostRanks = 1 << 20;
constexpr std::string_view kDispatch = "dispatch", kCombine = "combine";

void Write(const CountedCalls& row, JsonWriter& writer) {
  writer.BeginObject();
  writer.Member("collective", ToString(row.collective));
  writer.Member("size_bytes", row.size_bytes);
  writer.Member("type", ToString(row.type));
  if (row.op) writer.Member("op", ToString(*row.op));
  writer.Member("root", row.root);
  if (!row.served_by.empty()) writer.Member("served_by", row.served_by);
  writer.Member("calls", row.calls);
  writer.Member("timed", row.timed);
  writer.Member("time_ps", row.time_ps);
  writer.EndObject();
}

void Write(const CountedExperts& row, JsonWriter& writer) {
  writer.BeginObject();
  writer.Member("call", row.combines ? kCombine : kDispatch);
  writer.Member("row_bytes", row.row_bytes);
  if (!row.served_by.empty()) writer.Member("served_by", row.served_by);
  writer.Member("tokens", row.tokens);
  writer.Member("calls", row.calls);
  writer.Member("timed", row.timed);
  writer.Member("time_ps", row.time_ps);
  writer.EndObject();
}

StatusOr<std::optional<Rank>> FindRank(const JsonValue& in, std::string_view key, int64_t ranks) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, in.Find(key));
  if (!value) return std::optional<Rank>();
  XCCL_ASSIGN_OR_RETURN(const int64_t rank, value->Integer(0, ranks - 1));
  return std::optional(Rank(rank));
}

StatusOr<std::string> FindText(const JsonValue& in, std::string_view key) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, in.Find(key));
  if (!value) return std::string();
  XCCL_ASSIGN_OR_RETURN(const std::string_view text, value->String());
  return std::string(text);
}

// Reads a key whose value is a name, such as that of a data type. An error says where the name is.
template <typename T, typename Parse>
Status GetNamed(const JsonValue& in, std::string_view key, const Parse& parse, T& to) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, in.Get(key));
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, value.String());
  auto parsed = parse(name);
  if (!parsed.ok()) return value.Error(parsed.status().message());
  to = *parsed;
  return OkStatus();
}

StatusOr<CountedCalls> ReadRow(const JsonValue& value, int64_t ranks) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys(
      {"collective", "size_bytes", "type", "op", "root", "served_by", "calls", "timed", "time_ps"}));
  CountedCalls row;
  XCCL_RETURN_IF_ERROR(GetNamed(value, "collective", ParseCollectiveKind, row.collective));
  XCCL_RETURN_IF_ERROR(GetNamed(value, "type", ParseDataType, row.type));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> op, value.Find("op"));
  if (op) XCCL_RETURN_IF_ERROR(GetNamed(value, "op", ParseReduceOp, row.op));
  XCCL_ASSIGN_OR_RETURN(row.root, FindRank(value, "root", ranks));
  if (IsRooted(row.collective) != row.root.has_value())
    return value.Error(std::string(ToString(row.collective)) +
                       (row.root ? " with a root; expected none" : " without a root; expected one"));
  XCCL_ASSIGN_OR_RETURN(row.served_by, FindText(value, "served_by"));
  XCCL_ASSIGN_OR_RETURN(row.size_bytes, value.GetInteger("size_bytes", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(row.calls, value.GetInteger("calls", 1, kMost));
  XCCL_ASSIGN_OR_RETURN(row.timed, value.GetInteger("timed", 0, row.calls));
  XCCL_ASSIGN_OR_RETURN(row.time_ps, value.GetInteger("time_ps", 0, row.timed > 0 ? kMost : 0));
  return row;
}

StatusOr<CountedExperts> ReadExperts(const JsonValue& value) {
  XCCL_RETURN_IF_ERROR(
      value.CheckKeys({"call", "row_bytes", "served_by", "tokens", "calls", "timed", "time_ps"}));
  CountedExperts row;
  XCCL_ASSIGN_OR_RETURN(const JsonValue call, value.Get("call"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, call.String());
  if (name != kDispatch && name != kCombine)
    return call.Error("'" + std::string(name) + "'; expected dispatch or combine");
  row.combines = name == kCombine;
  XCCL_ASSIGN_OR_RETURN(row.row_bytes, value.GetInteger("row_bytes", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(row.served_by, FindText(value, "served_by"));
  XCCL_ASSIGN_OR_RETURN(row.tokens, value.GetInteger("tokens", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(row.calls, value.GetInteger("calls", 1, kMost));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> timed, value.Find("timed"));
  row.timed = row.calls;
  if (timed) {
    XCCL_ASSIGN_OR_RETURN(row.timed, timed->Integer(0, row.calls));
  }
  XCCL_ASSIGN_OR_RETURN(row.time_ps, value.GetInteger("time_ps", 0, row.timed > 0 ? kMost : 0));
  return row;
}

StatusOr<LoggedCommunicator> ReadCommunicator(const JsonValue& value) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys({"rank", "ranks", "members", "left_out", "calls", "experts"}));
  LoggedCommunicator communicator;
  XCCL_ASSIGN_OR_RETURN(const int64_t ranks, value.GetInteger("ranks", 1, kMostRanks));
  communicator.ranks = static_cast<int32_t>(ranks);
  XCCL_ASSIGN_OR_RETURN(communicator.rank, FindRank(value, "rank", ranks));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> members, value.Find("members"));
  if (members) {
    XCCL_ASSIGN_OR_RETURN(communicator.members, value.GetIntegers<Rank>("members", 0, kMostRanks - 1));
    if (std::ssize(communicator.members) != ranks)
      return members->Error(std::to_string(communicator.members.size()) + " entries; expected " +
                            std::to_string(ranks) + ", one for each rank");
    std::vector<Rank> sorted = communicator.members;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      return members->Error("rank " + std::to_string(twice->value) + " twice; expected each rank once");
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> left_out, value.Find("left_out"));
  if (left_out) {
    XCCL_ASSIGN_OR_RETURN(communicator.left_out, left_out->Integer(0, kMost));
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> rows, value.GetItems("calls"));
  for (const JsonValue& each : rows) {
    XCCL_ASSIGN_OR_RETURN(CountedCalls row, ReadRow(each, ranks));
    communicator.rows.push_back(std::move(row));
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> experts, value.Find("experts"));
  if (!experts) return communicator;
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> expert_rows, experts->Items());
  for (const JsonValue& each : expert_rows) {
    XCCL_ASSIGN_OR_RETURN(CountedExperts row, ReadExperts(each));
    communicator.experts.push_back(std::move(row));
  }
  return communicator;
}

}  // namespace

std::optional<DataType> DataTypeOfNccl(int64_t number) {
  if (number < 0 || number >= std::ssize(AllDataTypes())) return std::nullopt;
  return static_cast<DataType>(number);
}

std::optional<ReduceOp> ReduceOpOfNccl(int64_t number) {
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin,
                               ReduceOp::kAvg};
  if (number < 0 || number >= std::ssize(kOps)) return std::nullopt;
  return kOps[number];
}

std::string WriteCallLog(const CallLog& log) {
  std::ostringstream out;
  JsonWriter writer(out);
  writer.BeginObject();
  writer.Member("format", kFormat);
  writer.Member("call_log", log.library);
  if (!log.host.empty()) writer.Member("host", log.host);
  writer.Member("process", log.process);
  writer.Member("rank", log.rank);
  if (log.ranks > 0) writer.Member("ranks", int64_t{log.ranks});
  writer.Key("communicators");
  writer.BeginArray(JsonWriter::Layout::kLines);
  for (const LoggedCommunicator& communicator : log.communicators) {
    writer.BeginObject();
    writer.Member("rank", communicator.rank);
    writer.Member("ranks", int64_t{communicator.ranks});
    if (!communicator.members.empty()) writer.Member("members", communicator.members);
    if (communicator.left_out > 0) writer.Member("left_out", communicator.left_out);
    writer.Key("calls");
    writer.BeginArray(JsonWriter::Layout::kLines);
    for (const CountedCalls& row : communicator.rows) Write(row, writer);
    writer.EndArray();
    if (!communicator.experts.empty()) {
      writer.Key("experts");
      writer.BeginArray(JsonWriter::Layout::kLines);
      for (const CountedExperts& row : communicator.experts) Write(row, writer);
      writer.EndArray();
    }
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
  writer.Finish();
  return std::move(out).str();
}

StatusOr<CallLog> ReadCallLog(std::string_view text, const std::string& file) {
  XCCL_RETURN_IF_ERROR(CheckKind(text, file, FileKind::kCallLog));
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, file));
  const JsonValue root = document.root();
  XCCL_RETURN_IF_ERROR(
      root.CheckKeys({"format", "call_log", "host", "process", "rank", "ranks", "communicators"}));
  XCCL_RETURN_IF_ERROR(root.GetInteger("format", kFormat, kFormat).status());
  CallLog log;
  XCCL_ASSIGN_OR_RETURN(const JsonValue library, root.Get("call_log"));
  XCCL_ASSIGN_OR_RETURN(log.library, library.String());
  if (log.library != "xccl" && log.library != "nccl")
    return library.Error("'" + log.library + "'; expected xccl or nccl");
  XCCL_ASSIGN_OR_RETURN(log.host, FindText(root, "host"));
  XCCL_ASSIGN_OR_RETURN(log.process, root.GetInteger("process", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(log.rank, FindRank(root, "rank", kMostRanks));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> ranks, root.Find("ranks"));
  if (ranks) {
    XCCL_ASSIGN_OR_RETURN(const int64_t count, ranks->Integer(1, kMostRanks));
    log.ranks = static_cast<int32_t>(count);
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> communicators, root.GetItems("communicators"));
  for (const JsonValue& each : communicators) {
    XCCL_ASSIGN_OR_RETURN(LoggedCommunicator communicator, ReadCommunicator(each));
    log.communicators.push_back(std::move(communicator));
  }
  return log;
}

}  // namespace xccl
