// The frame of all textbook algorithms. A Recipe is an algorithm placed on a machine: how it gathers,
// broadcasts or exchanges chunks. The frame derives the other collectives: a reduction is the recipe on the
// reversed machine, played backwards (synth/common/reverse.h), and an allreduce is a reduction followed by a
// gather.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "synth/common/moves.h"
#include "synth/common/rank_graph.h"
#include "synth/common/serves.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Ranks up to which costs are measured on an algorithm's moves: finding paths over relays for more takes
// seconds.
inline constexpr int32_t kMostMeasured = 1024;

// An alpha-beta time: fixed_ps + ps_per_byte × size, where size is nccl-tests' (ir/sizes.h).
struct Cost {
  double fixed_ps = 0;
  double ps_per_byte = 0;
  double Ps(const SynthesisRequest& request) const;  // a barrier moves no bytes
};

using Blocks = std::vector<ChunkRange>;  // by member: its chunks of the whole
// Cuts the whole into equal pieces, one for each owner among n members, or, without owners, one for each
// member.
Blocks EqualBlocks(ChunkRange whole, int32_t n, std::span<const int32_t> owners = {});

// The function of a recipe that a collective uses, before any reversal.
enum class Base : uint8_t { kAllgather, kBroadcast, kGather, kAlltoall, kSendrecv, kAllreduce };
// An allreduce counts as its allgather.
Base BaseOf(CollectiveKind kind);

// The chunks of each (source member, destination member).
struct PairBlocks {
  const Collective* collective = nullptr;
  ChunkRange Of(int32_t source, int32_t destination) const;
};

// An algorithm placed on a machine for one request. Unset functions are not served. Functions add copies
// only, except for allreduce; steps start at 0.
struct Recipe {
  int32_t pieces = 1;  // best number of pieces of each block, or of the whole of a broadcast or allreduce
  Rank root;           // root of an allreduce by trees
  std::function<void(const Blocks&, Moves&)> allgather;
  std::function<void(Rank root, ChunkRange, Moves&)> broadcast;
  std::function<void(Rank root, const Blocks&, Moves&)> gather;
  std::function<void(const PairBlocks&, Moves&)> alltoall;
  std::function<void(const Collective&, Moves&)> sendrecv;
  std::function<void(ChunkRange, Moves&)> allreduce;
  std::vector<int32_t> allreduce_owners;  // members that own a block of an allreduce by allgather; empty: all
  bool repeats = false;                   // moves may give a rank a chunk that it has
  bool pipelines = false;                 // steps overlap: a link's load in all steps together counts
  std::optional<Cost> cost;               // time of the request's collective; absent: measured
  double alltoall_hops = 1;               // moves of a chunk of an alltoall, on average
  // An allreduce in which ranks exchange sums; set if it is faster than `allgather` backwards and forwards.
  struct Exchange {
    Cost cost;
    std::function<void(ChunkRange, Moves&)> allreduce;
  };
  std::optional<Exchange> exchange;
};

// Places an algorithm. `graph` is the reversed machine's for reductions. Requires: paths join all members.
// Errors: kInvalidInput "NAME: why; hint: ...".
using PlaceFunction = StatusOr<Recipe>(const RankGraph& graph, const SynthesisRequest& request);

struct TextbookEngine {
  std::string_view name;
  EngineFamily family = EngineFamily::kTrees;
  std::string_view summary;
  std::vector<CollectiveKind> kinds;
  PlaceFunction* place = nullptr;
};

// An engine placed for a request, which can estimate its time and make its schedule.
class PlacedEngine {
 public:
  // Errors: those of Serves and place. `graphs` and what `request` points to must outlive the result.
  static StatusOr<PlacedEngine> Place(const TextbookEngine& engine, RankGraphs& graphs,
                                      const SynthesisRequest& request);
  double EstimatePs() const;
  // The moves of single chunks in the schedule; saturates.
  int64_t Work() const;
  StatusOr<Synthesis> Make() const;

 private:
  PlacedEngine() = default;
  int32_t Chunks() const;
  StatusOr<Schedule> Gather(const RankGraph& graph, const Recipe& recipe, const Collective& cut) const;
  void AddMoves(const Recipe& recipe, const Collective& cut, Moves& moves) const;
  Cost BaseCost(const RankGraph& graph, const Recipe& recipe) const;

  const TextbookEngine* engine_ = nullptr;
  const SynthesisRequest* request_ = nullptr;
  const RankGraph* forward_ = nullptr;
  const RankGraph* reversed_ = nullptr;
  std::optional<Recipe> recipe_, reversed_recipe_;  // those that the collective's kind asks for
};

// `engine` must outlive the row.
Engine RowOf(const TextbookEngine& engine);

// The alpha-beta time of moves whose chunks each have size × `fraction` bytes. Steps follow one another, and
// each takes the latency of its longest path and the load of its busiest link; with `overlap` the busiest
// link of all steps together counts once. With a time model, a message also occupies its links for their
// overhead, and in the blocking model for their latency.
Cost MeasureMoves(const Moves& moves, const RankGraph& graph, double fraction, bool overlap = false,
                  std::optional<TimeModel> messages = {});

}  // namespace xccl
