// A line of a call is told by "NCCL INFO NAME: opCount"; its values stand behind their names, in any order.
// The part before "NCCL INFO" ends in "host:process:thread [device]", whatever launchers and clocks write
// before that. A communicator is known by its process, device and pointer until a line of its making says
// that the pointer is another's.
#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "interchange/traces/foreign_calls.h"

namespace xccl {
namespace {

constexpr std::string_view kInfo = "NCCL INFO ";
constexpr std::string_view kOpCount = ": opCount ";
constexpr int64_t kMostElements = int64_t{1} << 40;
constexpr int64_t kMostRanks = 1 << 20;

template <typename T>
std::optional<T> NumberOf(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The word behind a name among words.
std::optional<std::string_view> Behind(const std::vector<std::string_view>& words, std::string_view name) {
  const auto found = std::ranges::find(words, name);
  if (found == words.end() || found + 1 == words.end()) return std::nullopt;
  return found[1];
}
std::optional<int64_t> NumberBehind(const std::vector<std::string_view>& words, std::string_view name) {
  const std::optional<std::string_view> word = Behind(words, name);
  return word ? NumberOf<int64_t>(*word) : std::nullopt;
}

// Who wrote a line.
struct Writer {
  std::string_view host;
  int64_t process = 0, device = -1;
  bool operator==(const Writer&) const = default;
};

Writer WriterOf(std::string_view before) {
  Writer writer;
  std::vector<std::string_view> words = WordsOf(before);
  const auto is_number = [](std::string_view word) { return NumberOf<uint64_t>(word).has_value(); };
  while (!words.empty() && is_number(words.back())) words.pop_back();  // a clock of RCCL's
  if (!words.empty() && words.back().size() > 2 && words.back().front() == '[' && words.back().back() == ']')
    if (const auto device = NumberOf<int64_t>(words.back().substr(1, words.back().size() - 2))) {
      writer.device = *device;
      words.pop_back();
    }
  if (words.empty()) return writer;
  std::string_view place = words.back();  // host:process:thread
  const size_t thread = place.rfind(':');
  if (thread == place.npos || thread == 0 || !is_number(place.substr(thread + 1))) return writer;
  place = place.substr(0, thread);
  const size_t process = place.rfind(':');
  if (process == place.npos) return writer;
  const std::optional<int64_t> number = NumberOf<int64_t>(place.substr(process + 1));
  if (!number) return writer;
  writer.process = *number;
  place = place.substr(0, process);
  writer.host = place.substr(place.find_last_of(":>") + 1);  // npos + 1 is 0
  return writer;
}

class Reader {
 public:
  explicit Reader(ForeignCalls& calls) : calls_(calls) {}

  void Line(std::string_view line) {
    // Where ranks write at once, a line may begin with the beginning of another one.
    const size_t count = line.find(kOpCount);
    const size_t info = line.rfind(kInfo, count);
    if (info == line.npos) return;
    const std::string_view text = line.substr(info + kInfo.size());
    if (count != line.npos) {
      const std::optional<CollectiveKind> kind = KindOfNccl(text.substr(0, text.find(kOpCount)));
      const std::string_view values = line.substr(count + 2);
      if (kind && !Call(*kind, WriterOf(line.substr(0, info)), WordsOf(values))) ++calls_.unread;
    } else if (text.find(" comm 0x") != text.npos || text.starts_with("comm 0x")) {
      if (text.find(" Init ") != text.npos) Made(WriterOf(line.substr(0, info)), WordsOf(text));
    }
  }

 private:
  ForeignCommunicator& At(const Writer& writer, std::string_view pointer, bool is_new) {
    auto& place = places_[{std::string(writer.host), writer.process, writer.device, std::string(pointer)}];
    if (!place || is_new) {
      place = calls_.communicators.size();
      ForeignCommunicator& made = calls_.communicators.emplace_back();
      made.host = writer.host;
      made.process = writer.process;
      made.device = writer.device;
    }
    return calls_.communicators[*place];
  }

  void Made(const Writer& writer, const std::vector<std::string_view>& words) {
    const std::optional<std::string_view> pointer = Behind(words, "comm");
    const std::optional<int64_t> rank = NumberBehind(words, "rank"), ranks = NumberBehind(words, "nranks");
    if (!pointer || !rank || !ranks || *ranks < 1 || *ranks > kMostRanks || *rank < 0 || *rank >= *ranks)
      return;
    const std::string id(Behind(words, "commId").value_or(""));
    ForeignCommunicator* communicator = &At(writer, *pointer, false);
    const bool same = (communicator->ranks == 0 || communicator->ranks == *ranks) &&
                      (!communicator->rank || (communicator->rank == rank && communicator->id == id));
    if (!same) communicator = &At(writer, *pointer, true);
    communicator->rank = rank;
    communicator->ranks = *ranks;
    communicator->id = id;
  }

  // False where the line is cut.
  bool Call(CollectiveKind kind, const Writer& writer, const std::vector<std::string_view>& words) {
    const std::optional<std::string_view> pointer = Behind(words, "comm");
    const std::optional<int64_t> count = NumberBehind(words, "count"), type = NumberBehind(words, "datatype"),
                                 op = NumberBehind(words, "op"), root = NumberBehind(words, "root");
    std::optional<int64_t> ranks;
    constexpr std::string_view kRanks = "[nranks=";
    for (const std::string_view word : words)
      if (word.starts_with(kRanks) && word.ends_with(']'))
        ranks = NumberOf<int64_t>(word.substr(kRanks.size(), word.size() - kRanks.size() - 1));
    const std::optional<DataType> known = type ? DataTypeOfNccl(*type) : std::nullopt;
    if (!pointer || !count || *count < 0 || *count > kMostElements || !known || !op || !root || *root < 0)
      return false;
    if (!ranks || *ranks < 1 || *ranks > kMostRanks) return false;
    ForeignCommunicator* communicator = &At(writer, *pointer, false);
    if (communicator->ranks != 0 && communicator->ranks != *ranks) communicator = &At(writer, *pointer, true);
    communicator->ranks = *ranks;
    if (const std::optional<int64_t> rank = NumberBehind(words, "globalrank"); rank && *rank >= 0)
      communicator->job_rank = rank;
    if (IsRooted(kind) && *root >= *ranks) return false;
    if (*count == 0) return true;
    ++calls_.calls;
    communicator->Add(kind, *count * SizeOf(*known), *known,
                      IsReduction(kind) ? ReduceOpOfNccl(*op) : std::nullopt,
                      IsRooted(kind) ? root : std::nullopt, std::nullopt);
    return true;
  }

  ForeignCalls& calls_;
  std::map<std::tuple<std::string, int64_t, int64_t, std::string>, std::optional<size_t>> places_;
};

}  // namespace

std::optional<CollectiveKind> KindOfNccl(std::string_view name) {
  constexpr std::pair<std::string_view, CollectiveKind> kNames[] = {
      {"AllReduce", CollectiveKind::kAllreduce},
      {"AllGather", CollectiveKind::kAllgather},
      {"ReduceScatter", CollectiveKind::kReduceScatter},
      {"Broadcast", CollectiveKind::kBroadcast},
      {"Bcast", CollectiveKind::kBroadcast},
      {"Reduce", CollectiveKind::kReduce},
      {"AlltoAll", CollectiveKind::kAlltoall},
      {"AllToAll", CollectiveKind::kAlltoall},
      {"All2All", CollectiveKind::kAlltoall},
      {"Gather", CollectiveKind::kGather},
      {"Scatter", CollectiveKind::kScatter},
      {"Send", CollectiveKind::kSendrecv},  // its receive is the same message
  };
  const auto found = std::ranges::find(kNames, name, &std::pair<std::string_view, CollectiveKind>::first);
  return found == std::end(kNames) ? std::nullopt : std::optional(found->second);
}

void ForeignCommunicator::Add(CollectiveKind kind, int64_t share_bytes, DataType type,
                              std::optional<ReduceOp> op, std::optional<int64_t> root,
                              std::optional<int64_t> ns) {
  const auto [place, is_new] = places_.try_emplace({kind, share_bytes, type, op, root}, rows.size());
  if (is_new)
    rows.push_back({.collective = kind,
                    .size_bytes = share_bytes,
                    .type = type,
                    .op = op,
                    .root = root ? std::optional(Rank(*root)) : std::nullopt,
                    .served_by = "NCCL"});
  CountedCalls& row = rows[place->second];
  ++row.calls;
  if (!ns) return;
  ++row.timed;
  row.time_ps = std::min(row.time_ps + std::min(*ns, kForeverPs / kPsPerNs) * kPsPerNs, kForeverPs);
}

bool HasNcclCalls(std::string_view text) {
  for (size_t at = text.find(kOpCount); at != text.npos; at = text.find(kOpCount, at + 1)) {
    const size_t begin = text.rfind('\n', at) + 1;  // npos + 1 is 0
    const size_t info = text.rfind(kInfo, at);
    if (info == text.npos || info < begin) continue;
    const size_t name = info + kInfo.size();
    if (name <= at && KindOfNccl(text.substr(name, at - name))) return true;
  }
  return false;
}

void ReadNcclCalls(std::string_view text, ForeignCalls& calls) {
  Reader reader(calls);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.Line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace xccl
