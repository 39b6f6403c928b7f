// NCCL's example plugin writes Chrome's events, one a line, of which some are no JSON; its inspector writes
// an object a line. Both are read by the names of their values. The example plugin's collectives end when
// NCCL has launched them, so a call's time is that of its kernel's clock, from its first channel to its last.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/strings.h"
#include "interchange/traces/foreign_calls.h"

namespace xccl {
namespace {

constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kMostBytes = int64_t{1} << 50;
constexpr int64_t kMostNs = int64_t{3'600'000'000'000};  // of a call

// The value of "NAME": in a line, without quotes.
std::optional<std::string_view> Value(std::string_view line, std::string_view name) {
  const std::string key = "\"" + std::string(name) + "\"";
  const size_t at = line.find(key);
  if (at == line.npos) return std::nullopt;
  size_t begin = line.find_first_not_of(" :", at + key.size());
  if (begin == line.npos) return std::nullopt;
  if (line[begin] == '"') {
    const size_t end = line.find('"', begin + 1);
    if (end == line.npos) return std::nullopt;
    return line.substr(begin + 1, end - begin - 1);
  }
  return Trim(line.substr(begin, line.find_first_of(",}", begin) - begin));
}

template <typename T = int64_t>
std::optional<T> Number(std::string_view line, std::string_view name) {
  const std::optional<std::string_view> text = Value(line, name);
  if (!text) return std::nullopt;
  T value{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

// "ncclFloat32" as our type.
std::optional<DataType> TypeOf(std::string_view name) {
  constexpr std::pair<std::string_view, DataType> kTypes[] = {
      {"ncclInt8", DataType::kInt8},          {"ncclUint8", DataType::kUint8},
      {"ncclInt32", DataType::kInt32},        {"ncclUint32", DataType::kUint32},
      {"ncclInt64", DataType::kInt64},        {"ncclUint64", DataType::kUint64},
      {"ncclFloat16", DataType::kHalf},       {"ncclFloat32", DataType::kFloat},
      {"ncclFloat64", DataType::kDouble},     {"ncclBfloat16", DataType::kBfloat16},
      {"ncclFloat8e4m3", DataType::kFp8E4m3}, {"ncclFloat8e5m2", DataType::kFp8E5m2},
  };
  const auto found = std::ranges::find(kTypes, name, &std::pair<std::string_view, DataType>::first);
  return found == std::end(kTypes) ? std::nullopt : std::optional(found->second);
}

class Reader {
 public:
  explicit Reader(ForeignCalls& calls) : calls_(calls) {}

  void Line(std::string_view line) {
    const std::optional<std::string_view> category = Value(line, "cat");
    if (!category) {
      if (Value(line, "n_ranks")) header_ = line;
      if (line.find("\"coll_msg_size_bytes\"") != line.npos) Inspected(line);
      return;
    }
    const bool begins = Value(line, "ph") == "b";
    if (*category == "COLL" || *category == "P2P") {
      const std::optional<CollectiveKind> kind = KindOfNccl(Value(line, "name").value_or(""));
      if (!kind) return;
      if (begins)
        Begin(*kind, line);
      else
        End(line);
    } else if (*category == "GPU" && begins && open_) {
      const auto start = Number<uint64_t>(line, "StartGpuClk"), stop = Number<uint64_t>(line, "StopGpuClk");
      if (!start || !stop || *start == 0 || *stop <= *start) return;
      open_->start = std::min(open_->start, *start);
      open_->stop = std::max(open_->stop, *stop);
    }
  }

 private:
  struct Open {
    size_t communicator = 0;
    CollectiveKind kind = CollectiveKind::kAllreduce;
    int64_t id = 0, bytes = 0;
    DataType type = DataType::kFloat;
    uint64_t start = UINT64_MAX, stop = 0;
  };

  ForeignCommunicator& At(std::string host, int64_t process, std::string_view id, int64_t rank,
                          int64_t ranks) {
    const auto [place, is_new] = places_.try_emplace({std::string(id), rank}, calls_.communicators.size());
    if (is_new) {
      ForeignCommunicator& made = calls_.communicators.emplace_back();
      made.host = std::move(host);
      made.process = process;
      made.id = id;
      made.rank = rank;
      made.ranks = ranks;
    }
    return calls_.communicators[place->second];
  }

  void Begin(CollectiveKind kind, std::string_view line) {
    open_.reset();
    const auto rank = Number(line, "Rank"), count = Number(line, "Count"), process = Number(line, "pid"),
               number = Number(line, "id");
    const std::optional<std::string_view> id = Value(line, "CommHash");
    const std::optional<DataType> type = TypeOf(Value(line, "Datatype").value_or(""));
    if (!rank || *rank < 0 || *rank >= kMostRanks || !count || *count < 1 || *count > kMostBytes / 8 ||
        !process || *process < 0 || !number || !id || !type) {
      ++calls_.unread;
      return;
    }
    At("", *process, *id, *rank, 0);
    open_ = Open{places_.at({std::string(*id), *rank}), kind, *number, *count * SizeOf(*type), *type};
  }

  void End(std::string_view line) {
    if (!open_ || Number(line, "id") != open_->id) return;
    std::optional<int64_t> ns;
    if (open_->stop > open_->start && open_->stop - open_->start <= static_cast<uint64_t>(kMostNs))
      ns = static_cast<int64_t>(open_->stop - open_->start);
    ++calls_.calls;
    // The trace names no root.
    calls_.communicators[open_->communicator].Add(
        open_->kind, open_->bytes, open_->type, {},
        IsRooted(open_->kind) ? std::optional<int64_t>(0) : std::nullopt, ns);
    open_.reset();
  }

  void Inspected(std::string_view line) {
    const std::optional<CollectiveKind> kind = KindOfNccl(Value(line, "coll").value_or(""));
    const auto rank = Number(header_, "rank"), ranks = Number(header_, "n_ranks"),
               bytes = Number(line, "coll_msg_size_bytes");
    const auto us = Number<double>(line, "coll_exec_time_us");
    const std::optional<std::string_view> id = Value(header_, "id");
    if (!kind) return;
    if (!rank || !ranks || *ranks < 1 || *ranks > kMostRanks || *rank < 0 || *rank >= *ranks || !bytes ||
        *bytes < 1 || *bytes > kMostBytes || !id) {
      ++calls_.unread;
      return;
    }
    std::optional<int64_t> ns;
    if (us && *us > 0 && *us <= static_cast<double>(kMostNs) / 1e3) ns = std::llround(*us * 1e3);
    ++calls_.calls;
    // The plugin counts bytes, and names neither type nor root.
    At(std::string(Value(header_, "hostname").value_or("")), Number(header_, "pid").value_or(0), *id, *rank,
       *ranks)
        .Add(*kind, *bytes, DataType::kUint8, {}, IsRooted(*kind) ? std::optional<int64_t>(0) : std::nullopt,
             ns);
  }

  ForeignCalls& calls_;
  std::optional<Open> open_;
  std::string_view header_;  // the inspector's last line with a communicator, which the lines behind it share
  std::map<std::pair<std::string, int64_t>, size_t> places_;  // by id and rank
};

}  // namespace

bool IsNcclProfile(std::string_view text) {
  return text.find("\"coll_msg_size_bytes\"") != text.npos ||
         (text.find("\"CommHash\"") != text.npos && text.find("\"cat\": \"COLL\"") != text.npos);
}

void ReadNcclProfile(std::string_view text, ForeignCalls& calls) {
  Reader reader(calls);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.Line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace xccl
