// The frame of all textbook algorithms. A Recipe says how an algorithm gathers, broadcasts or exchanges
// chunks on a machine. The frame derives the other collectives: a reduction or scatter is the recipe on the
// reversed machine, played backwards (synth/common/reverse.h); an allreduce is a reduction, then an allgather
// or broadcast, unless the recipe makes it itself.
// Words: member i is the i-th rank of the collective. A block is the chunks that one member owns. A piece is
// one of the parts, mostly equal, of a block or of all data. A stripe is one of several copies of an
// algorithm that run at once, each on its own piece of every block. In formulas n is the number of members, S
// the size in bytes, alpha the time of a message without its bytes, beta the time of a byte.
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

// The most ranks for which algorithms of rounds or circles measure their moves when they are placed. For more
// ranks, finding paths over relays takes seconds.
inline constexpr int32_t kMostMeasured = 1024;

// An alpha-beta time: fixed_ps + ps_per_byte × size, with the size as nccl-tests counts it (ir/sizes.h).
struct Cost {
  double fixed_ps = 0;
  double ps_per_byte = 0;
  double Ps(const SynthesisRequest& request) const;  // a barrier moves no bytes
};

using Blocks = std::vector<ChunkRange>;  // by member: the chunks that the member owns
// Cuts `whole` into equal pieces and gives one piece to each owner. `owners` are indices of some of the n
// members. If `owners` is empty, every member gets a piece.
Blocks EqualBlocks(ChunkRange whole, int32_t n, std::span<const int32_t> owners = {});

// The function of a Recipe that makes a collective's moves, before the frame reverses them.
enum class Base : uint8_t { kAllgather, kBroadcast, kGather, kAlltoall, kSendrecv, kAllreduce };
// Returns the Base of a kind. An allreduce counts as kAllgather.
Base BaseOf(CollectiveKind kind);

// The chunks of an alltoall, by source and destination member.
struct PairBlocks {
  const Collective* collective = nullptr;
  ChunkRange Of(int32_t source, int32_t destination) const;
};

// An algorithm placed on a machine for one request. The function of the request's Base must be set; for an
// allreduce, one of `allreduce`, `allgather` and `broadcast`, of which the first that is set is used. All
// functions except `allreduce` add only copies. Steps start at 0.
struct Recipe {
  int32_t pieces = 1;  // best number of pieces: of all data for `broadcast` and `allreduce`, else of a block
  // Weights of the pieces, if the pieces of an allreduce are not equal. If the request gives a number of
  // chunks, the chunks are equal in any case.
  std::vector<int64_t> weights = {};
  Rank root;  // root of an allreduce over trees
  std::function<void(const Blocks&, Moves&)> allgather;
  std::function<void(Rank root, ChunkRange, Moves&)> broadcast;
  std::function<void(Rank root, const Blocks&, Moves&)> gather;
  std::function<void(const PairBlocks&, Moves&)> alltoall;
  std::function<void(const Collective&, Moves&)> sendrecv;
  std::function<void(ChunkRange, Moves&)> allreduce;
  std::vector<int32_t> allreduce_owners;  // members that own a block in an allreduce; empty: all members
  bool repeats = false;                   // a move may bring a rank a chunk that the rank has
  bool pipelines = false;                 // steps overlap, so a link's load in all steps is added up
  std::optional<Cost> cost;               // time of the moves; absent: the frame measures them
  double alltoall_hops = 1;               // average number of hops of a chunk in an alltoall, at least 1
  // An allreduce in which ranks exchange sums. Set if faster than `allgather` backwards and then forwards.
  struct Exchange {
    Cost cost;
    std::function<void(ChunkRange, Moves&)> allreduce;
  };
  std::optional<Exchange> exchange;
};

// Places an algorithm on a machine. For a reduction or scatter, `graph` is the graph of the reversed machine.
// An allreduce may be placed on both machines. Requires that paths join all members. Errors: kInvalidInput
// "NAME: why; hint: ...".
using PlaceFunction = StatusOr<Recipe>(const RankGraph& graph, const SynthesisRequest& request);

struct TextbookEngine {
  std::string_view name;
  EngineFamily family = EngineFamily::kTrees;
  std::string_view summary;
  std::vector<CollectiveKind> kinds;
  PlaceFunction* place = nullptr;
  // Serves only machines whose links all join two GPUs. Their graph of ranks takes time linear in the links.
  bool cables_only = false;
};

// An engine placed for one request. It can estimate its time and make its schedule.
class PlacedEngine {
 public:
  // Errors: those of ServesKind and engine.place. All arguments, and what they point to, must outlive the
  // result.
  static StatusOr<PlacedEngine> Place(const TextbookEngine& engine, RankGraphs& graphs,
                                      const SynthesisRequest& request);
  double EstimatePs() const;
  // Returns an estimate of the number of moves in the schedule, each of a single chunk; at most 10^15.
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
  std::optional<Recipe> recipe_, reversed_recipe_;  // set if the collective's kind needs them
};

// Returns the row of a textbook engine in the table of synth/engines.h. `engine` must outlive the row.
Engine RowOf(const TextbookEngine& engine);

// Returns the alpha-beta time of moves. Each chunk has size × `fraction` bytes. Steps follow one another. A
// step takes the latency of its longest path plus the time of its busiest link. With `overlap`, the loads of
// all steps are added up, and the busiest link counts once. If `messages` names a time model, each message
// without relays also occupies its links for their overhead, and in the blocking model for their latency. If
// there are very many moves in many steps, only some steps are measured and stand for all.
Cost MeasureMoves(const Moves& moves, const RankGraph& graph, double fraction, bool overlap = false,
                  std::optional<TimeModel> messages = {});

}  // namespace xccl
