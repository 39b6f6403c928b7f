// libnccl-tuner-xccl.so: a tuner plugin of all versions (abi.h) that decides from a table (table.h). It
// changes what a row of the table says and nothing else, and returns success whatever happens: another return
// would fail the collective.
//
// The environment names the table when a communicator is made: XCCL_TUNER_TABLE, or NCCL_TUNER_CONFIG_FILE,
// the name that NVIDIA's example plugin reads. A table with a fault steers nothing.
//
// Threads: NCCL may make, use and end communicators from several threads. A tuner does not change once it is
// made, so calls take no lock.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/exceptions.h"
#include "base/files.h"
#include "base/strings.h"
#include "runtime/nccl/tuner/abi.h"
#include "runtime/nccl/tuner/lookup.h"
#include "runtime/nccl/tuner/table.h"

namespace xccl::nccl_tuner {
namespace {

// The rows for one communicator, and what NCCL said of it.
struct Tuner {
  Lookup rows[kNumCollectives];
  Lookup chunks[kNumCollectives];  // the rows with a chunk size
  std::optional<int64_t> nodes;
  Tuner* next = nullptr;  // list of the tuners in use
};

// All of these are constants at load: no code of this library runs before NCCL calls it.
constinit std::mutex tuners_mutex;
constinit Tuner* tuners = nullptr;
constinit std::atomic<uint64_t> last_fault = 0;  // the hash of its text

void Say(Logger log, int level, int line, const std::string& text) {
  if (log != nullptr) log(level, kLogInit | kLogTuning, __FILE__, line, "%s", text.c_str());
}

// Tells a fault, unless it is the one that was told last: each communicator of a process meets it.
void SayFault(Logger log, int line, const std::string& fault) {
  if (const uint64_t hash = HashOf(fault); last_fault.exchange(hash) != hash)
    Say(log, kLogWarn, line, "TUNER/XCCL: " + fault + "; nothing is steered");
}

const char* Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

const char* TablePath() {
  const char* ours = Variable("XCCL_TUNER_TABLE");
  return ours != nullptr ? ours : Variable("NCCL_TUNER_CONFIG_FILE");
}

// Takes the rows for a communicator from the table that the environment names.
Status Fill(Tuner& tuner, std::optional<int64_t> ranks, Logger log) {
  const char* path = TablePath();
  if (path == nullptr) {
    Say(log, kLogInfo, __LINE__, "TUNER/XCCL: no table: XCCL_TUNER_TABLE names none; nothing is steered");
    return OkStatus();
  }
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  std::vector<std::string> notes;
  XCCL_ASSIGN_OR_RETURN(const std::vector<Row> rows, ReadTable(text, path, &notes));
  for (const std::string& note : notes) Say(log, kLogInfo, __LINE__, "TUNER/XCCL: " + note);
  std::vector<Row> here[kNumCollectives], chunks[kNumCollectives];
  size_t count = 0;
  for (const Row& row : rows) {
    if (!IsFor(row, tuner.nodes, ranks)) continue;
    here[static_cast<size_t>(row.collective)].push_back(row);
    if (row.chunk_bytes) chunks[static_cast<size_t>(row.collective)].push_back(row);
    ++count;
  }
  for (int i = 0; i < kNumCollectives; ++i) {
    tuner.rows[i] = Lookup(std::move(here[i]));
    tuner.chunks[i] = Lookup(std::move(chunks[i]));
  }
  Say(log, kLogInfo, __LINE__,
      "TUNER/XCCL: " + Counted(std::ssize(rows), "row") + " from " + path + ", " + std::to_string(count) +
          " for " +
          (ranks ? Counted(*tuner.nodes, "node") + " and " + Counted(*ranks, "rank")
                 : "any number of nodes and ranks"));
  return OkStatus();
}

// A tuner for a communicator, or nullptr where the table has a fault, which is told.
std::unique_ptr<Tuner> MakeTuner(std::optional<int64_t> nodes, std::optional<int64_t> ranks,
                                 Logger log) noexcept {
  try {
    auto tuner = std::make_unique<Tuner>();
    tuner->nodes = nodes;
    const Status filled = Fill(*tuner, ranks, log);
    if (filled.ok()) return tuner;
    SayFault(log, __LINE__, filled.message());
  } catch (const std::exception& error) {
    // A text made by SayFault could need memory that is not there, so the exception's own text is logged.
    if (log != nullptr)
      log(kLogWarn, kLogInit | kLogTuning, __FILE__, __LINE__, "TUNER/XCCL: %s; nothing is steered",
          error.what());
  }
  return nullptr;
}

void Init(void** context, size_t nodes, size_t ranks, Logger log) noexcept {
  if (context == nullptr) return;
  Tuner* tuner = MakeTuner(static_cast<int64_t>(nodes), static_cast<int64_t>(ranks), log).release();
  *context = tuner;
  if (tuner == nullptr) return;
  const std::lock_guard lock(tuners_mutex);
  tuner->next = tuners;
  tuners = tuner;
}

int Finalize(void* context) noexcept {
  std::unique_ptr<Tuner> ended;
  const std::lock_guard lock(tuners_mutex);
  // Only one that lives is freed: a communicator that failed to start may be ended twice.
  for (Tuner** place = &tuners; *place != nullptr; place = &(*place)->next) {
    if (*place != context) continue;
    ended.reset(*place);
    *place = ended->next;
    break;
  }
  return kSuccess;
}

// Whether the tuner has rows for the collective.
bool HasRows(const Tuner* tuner, int collective) {
  return tuner != nullptr && collective >= 0 && collective < kNumCollectives &&
         !tuner->rows[collective].empty();
}

// v3 and later. NCCL runs what costs least; a cost of 0 is less than all that it computes.
int SteerByCost(void* context, const Call& call, float** table, int num_algorithms, int num_protocols,
                int* channels) noexcept {
  const auto* tuner = static_cast<const Tuner*>(context);
  auto* const costs = reinterpret_cast<float*>(table);
  if (costs == nullptr || !HasRows(tuner, call.collective)) return kSuccess;
  const auto cost = [&](int algorithm, int protocol) -> float& {
    return costs[algorithm * num_protocols + protocol];
  };
  Choices offered;
  for (int a = 0; a < std::min(num_algorithms, kNumAlgorithms); ++a)
    for (int p = 0; p < std::min(num_protocols, kNumProtocols); ++p)
      offered[IndexOf(static_cast<Algorithm>(a), static_cast<Protocol>(p))] = cost(a, p) >= 0;
  const Row* row = tuner->rows[call.collective].First(call, offered);
  if (row == nullptr) return kSuccess;
  cost(static_cast<int>(row->algorithm), static_cast<int>(row->protocol)) = 0;
  if (row->channels && channels != nullptr) *channels = *row->channels;
  return kSuccess;
}

// Whether a release of v1 or v2 runs a choice. These releases obey without a check, so this refuses all that
// they do not surely have:
// - LL128, which gives wrong data on links that tear its lines, and only NCCL knows them;
// - NVLS on several nodes, and any NVLS where the number of nodes is not known (v1);
// - CollNet but for allreduce, and PAT, which came later.
bool RunsUnchecked(Collective collective, Algorithm algorithm, Protocol protocol, const Tuner& tuner,
                   bool collnet, bool nvls) {
  if (protocol == Protocol::kLl128 || !HasKernels(collective, algorithm, protocol)) return false;
  switch (algorithm) {
    case Algorithm::kRing:
    case Algorithm::kTree:
      return true;
    case Algorithm::kCollnetDirect:
    case Algorithm::kCollnetChain:
      return collnet && collective == Collective::kAllreduce;
    case Algorithm::kNvls:
      return nvls && tuner.nodes == 1;
    case Algorithm::kNvlsTree:
      return nvls && tuner.nodes.value_or(1) > 1;
    case Algorithm::kPat:
      return false;
  }
  return false;
}

// v1 and v2: the plugin names the algorithm and the protocol.
int SteerByName(const Tuner* tuner, const Call& call, int collnet, int nvls, int* algorithm, int* protocol,
                int* channels) noexcept {
  constexpr int kMostChannels = 32;  // MAXCHANNELS of these releases
  if (algorithm == nullptr || protocol == nullptr || !HasRows(tuner, call.collective)) return kSuccess;
  Choices running;
  for (int a = 0; a < kNumAlgorithms; ++a)
    for (int p = 0; p < kNumProtocols; ++p) {
      const auto one = static_cast<Algorithm>(a);
      const auto by = static_cast<Protocol>(p);
      running[IndexOf(one, by)] =
          RunsUnchecked(static_cast<Collective>(call.collective), one, by, *tuner, collnet == 1, nvls == 1);
    }
  const Row* row = tuner->rows[call.collective].First(call, running);
  if (row == nullptr) return kSuccess;
  *algorithm = static_cast<int>(row->algorithm);
  *protocol = static_cast<int>(row->protocol);
  // Algorithms of a switch have channels of their own, fewer than rings may have.
  const bool chain = row->algorithm == Algorithm::kRing || row->algorithm == Algorithm::kTree;
  if (chain && row->channels && *row->channels <= kMostChannels && channels != nullptr)
    *channels = *row->channels;
  return kSuccess;
}

// v1 and v2 overrule NCCL_ALGO and NCCL_PROTO, which are the user's last word.
bool UserHasChosen(Logger log) {
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
    if (Variable(name) == nullptr) continue;
    if (log != nullptr)
      log(kLogInfo, kLogInit | kLogTuning, __FILE__, __LINE__, "TUNER/XCCL: %s is set; nothing is steered",
          name);
    return true;
  }
  return false;
}

// NCCL 2.19 and 2.20 do not say which communicator asks, so all of a process share one tuner, without the
// rows that are for some communicators only: which of these there are differs between ranks.
struct Shared {
  std::mutex mutex;
  int communicators = 0;
  std::atomic<Tuner*> tuner = nullptr;
};
constinit Shared shared;

int InitV1(size_t, size_t, Logger log) noexcept {
  const std::lock_guard lock(shared.mutex);
  if (shared.communicators++ > 0 || UserHasChosen(log)) return kSuccess;
  shared.tuner = MakeTuner(std::nullopt, std::nullopt, log).release();
  return kSuccess;
}

int GetV1(int collective, size_t bytes, int collnet, int nvls, int pipe_ops, int* algorithm, int* protocol,
          int* channels) noexcept {
  const Call call = {collective, static_cast<int64_t>(bytes), pipe_ops, {}};
  return SteerByName(shared.tuner, call, collnet, nvls, algorithm, protocol, channels);
}

int DestroyV1() noexcept {
  const std::lock_guard lock(shared.mutex);
  if (shared.communicators == 0 || --shared.communicators > 0) return kSuccess;
  delete shared.tuner.exchange(nullptr);
  return kSuccess;
}

int InitV2(size_t ranks, size_t nodes, Logger log, void** context) noexcept {
  if (context != nullptr) *context = nullptr;
  if (!UserHasChosen(log)) Init(context, nodes, ranks, log);
  return kSuccess;
}

int GetV2(void* context, int collective, size_t bytes, int collnet, int nvls, int pipe_ops, int* algorithm,
          int* protocol, int* channels) noexcept {
  const Call call = {collective, static_cast<int64_t>(bytes), pipe_ops, {}};
  return SteerByName(static_cast<const Tuner*>(context), call, collnet, nvls, algorithm, protocol, channels);
}

int InitV3(size_t ranks, size_t nodes, Logger log, void** context) noexcept {
  Init(context, nodes, ranks, log);
  return kSuccess;
}

int GetV3(void* context, int collective, size_t bytes, int pipe_ops, float** costs, int num_algorithms,
          int num_protocols, int* channels) noexcept {
  const Call call = {collective, static_cast<int64_t>(bytes), pipe_ops, {}};
  return SteerByCost(context, call, costs, num_algorithms, num_protocols, channels);
}

int GetV4(void* context, int collective, size_t bytes, int pipe_ops, float** costs, int num_algorithms,
          int num_protocols, int registered, int* channels) noexcept {
  const Call call = {collective, static_cast<int64_t>(bytes), pipe_ops, registered != 0};
  return SteerByCost(context, call, costs, num_algorithms, num_protocols, channels);
}

int InitV5(void** context, uint64_t, size_t ranks, size_t nodes, Logger log, NvlDomains*,
           Constants*) noexcept {
  Init(context, nodes, ranks, log);
  return kSuccess;
}

// The chunk size of the first row for this choice that has one.
int GetChunkSize(void* context, int collective, size_t bytes, int algorithm, int protocol, int,
                 size_t* chunk_bytes) noexcept {
  const auto* tuner = static_cast<const Tuner*>(context);
  if (chunk_bytes == nullptr || !HasRows(tuner, collective)) return kSuccess;
  if (algorithm < 0 || algorithm >= kNumAlgorithms || protocol < 0 || protocol >= kNumProtocols)
    return kSuccess;
  Choices choice;
  choice.set(IndexOf(static_cast<Algorithm>(algorithm), static_cast<Protocol>(protocol)));
  const Call call = {collective, static_cast<int64_t>(bytes), {}, {}};
  const Row* row = tuner->chunks[collective].First(call, choice);
  if (row != nullptr) *chunk_bytes = static_cast<size_t>(*row->chunk_bytes);
  return kSuccess;
}

}  // namespace
}  // namespace xccl::nccl_tuner

namespace nccl_tuner = xccl::nccl_tuner;

// The names that NCCL looks for.
extern "C" {
extern const nccl_tuner::TunerV1 ncclTunerPlugin_v1;
extern const nccl_tuner::TunerV2 ncclTunerPlugin_v2;
extern const nccl_tuner::TunerV3 ncclTunerPlugin_v3;
extern const nccl_tuner::TunerV4 ncclTunerPlugin_v4;
extern const nccl_tuner::TunerV5 ncclTunerPlugin_v5;
extern const nccl_tuner::TunerV6 ncclTunerPlugin_v6;

const nccl_tuner::TunerV1 ncclTunerPlugin_v1 = {"XCCL", nccl_tuner::InitV1, nccl_tuner::GetV1,
                                                nccl_tuner::DestroyV1};
const nccl_tuner::TunerV2 ncclTunerPlugin_v2 = {"XCCL", nccl_tuner::InitV2, nccl_tuner::GetV2,
                                                nccl_tuner::Finalize};
const nccl_tuner::TunerV3 ncclTunerPlugin_v3 = {"XCCL", nccl_tuner::InitV3, nccl_tuner::GetV3,
                                                nccl_tuner::Finalize};
const nccl_tuner::TunerV4 ncclTunerPlugin_v4 = {"XCCL", nccl_tuner::InitV3, nccl_tuner::GetV4,
                                                nccl_tuner::Finalize};
const nccl_tuner::TunerV5 ncclTunerPlugin_v5 = {"XCCL", nccl_tuner::InitV5, nccl_tuner::GetV4,
                                                nccl_tuner::Finalize};
const nccl_tuner::TunerV6 ncclTunerPlugin_v6 = {"XCCL", nccl_tuner::InitV5, nccl_tuner::GetV4,
                                                nccl_tuner::Finalize, nccl_tuner::GetChunkSize};
}
