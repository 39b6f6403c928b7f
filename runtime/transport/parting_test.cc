#include "runtime/transport/parting.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace xccl {
namespace {

// A network with one connection to rank 1 and one from it, in which something comes with every look.
class FakeNetwork final : public Transport {
 public:
  FakeNetwork(std::function<StatusOr<bool>(int look)> on_look, int& looks, int& given_back)
      : on_look_(std::move(on_look)), looks_(looks), given_back_(given_back) {}
  ConnectionEnd At(int32_t /*connection*/) override { return {}; }
  void Put(int32_t /*connection*/, int64_t /*bytes*/) override {}
  void Take(int32_t /*connection*/, bool /*together*/) override {}
  void GiveBack() override { ++given_back_; }
  StatusOr<bool> Progress() override { return on_look_(++looks_); }
  bool Flushed() const override { return looks_ >= 3; }
  std::span<const int> files() const override { return {}; }
  bool PrepareToSleep() override { return true; }

 private:
  const std::function<StatusOr<bool>(int look)> on_look_;
  int& looks_;
  int& given_back_;
};

struct Seen {
  int looks = 0, given_back = 0;
};

// How often a parting end looks at its network. Rank 1 has taken `taken` of four messages, and one more by
// each look; `rules` decides the rest.
Seen Part(uint64_t taken, PartingRules rules, const Status& network = OkStatus()) {
  std::vector<ConnectionCell> cells(2);
  cells[0].head = 4;
  cells[0].tail = taken;
  cells[1].head = 9;  // received: a tail that is behind is no reason to wait
  NetworkMemory memory;
  memory.layout.connections = {{.connection = 0, .peer = Rank(1), .sends = true, .cell = 0},
                               {.connection = 1, .peer = Rank(1), .sends = false, .cell = 1}};
  memory.cells = cells.data();
  Seen seen;
  const auto on_look = [&](int /*look*/) -> StatusOr<bool> {
    if (!network.ok()) return network;
    if (cells[0].tail < 4) ++cells[0].tail;
    return true;
  };
  PartWhenTaken(std::make_unique<FakeNetwork>(on_look, seen.looks, seen.given_back), memory, std::move(rules))
      .reset();
  EXPECT_EQ(seen.given_back, 1);
  return seen;
}

PartingRules Rules() {
  return {.failed = [] { return false; },
          .has_left = [](Rank /*rank*/) { return false; },
          .time_limit = std::chrono::hours(1)};
}

TEST(Parting, WaitsUntilAllIsTakenAndAllHasGoneOut) {
  EXPECT_EQ(Part(4, Rules()).looks, 3);  // until it is flushed
  EXPECT_EQ(Part(0, Rules()).looks, 4);
}

TEST(Parting, ExpectsNothingOfARankThatHasLeft) {
  PartingRules rules = Rules();
  rules.has_left = [](Rank rank) { return rank == Rank(1); };
  EXPECT_EQ(Part(0, rules).looks, 3);
}

TEST(Parting, EndsWithAFailureAnErrorOrItsTime) {
  PartingRules rules = Rules();
  rules.failed = [] { return true; };
  EXPECT_EQ(Part(0, rules).looks, 0);
  EXPECT_EQ(Part(0, Rules(), PeerEnded("rank 1 is gone")).looks, 1);
  rules = Rules();
  rules.time_limit = {};
  EXPECT_EQ(Part(0, rules).looks, 0);
}

}  // namespace
}  // namespace xccl
