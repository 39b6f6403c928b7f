#include "pipeline/message_costs.h"

#include <gtest/gtest.h>

#include "ir/known_machines.h"
#include "pipeline/pipeline.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

std::string CostOf(const std::string& machine, int64_t size_bytes, bool lower, bool with_model) {
  const Topology topology = LoadTopology(machine).value();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllgather;
  spec.ranks = AllRanks(topology.num_ranks());
  PlanOptions options{.engine = "ring", .lower = lower};
  options.request.size_bytes = size_bytes;
  if (with_model) options.machine = HopperModel();
  return CostOfShortMessages(MakePlan(topology, Collective::Create(spec).value(), options).value());
}

// A message of allgather on a ring of 4 is an eighth of the size, for both directions are used. LL moves 20
// GB/s, so 10 kB take as long as a message costs.
TEST(MessageCosts, ShortMessagesAreSaid) {
  EXPECT_EQ(
      CostOf("ring:4", 4096, false, false),
      "512 bytes each: about 5.5us on a GPU (a launch and 6 a rank x 500ns, estimated for blackwell); hint: "
      "arch=\"sm90\" or --machine hopper");
  const std::string of_program = CostOf("ring:4", 4096, true, false);
  EXPECT_TRUE(of_program.starts_with("512 bytes each: the program takes ")) << of_program;
  EXPECT_NE(of_program.find(" on a GPU (simulated on blackwell); hint: "), std::string::npos) << of_program;
}

TEST(MessageCosts, LongMessagesAndModelsAreSilent) {
  EXPECT_NE(CostOf("ring:4", 79872, false, false), "");
  EXPECT_EQ(CostOf("ring:4", 80128, false, false), "");
  EXPECT_EQ(CostOf("ring:4", 4096, true, true), "");
}

}  // namespace
}  // namespace xccl
