#include "ir/lower/verify_passes.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/line.h"

namespace xccl::lowering {
namespace {

// The lowering of the line, of which a test spoils one value.
struct Values {
  Schedule schedule = LineSchedule();
  Paths paths = LinePaths();
  Ordered ordered = {2, LineMoves(), LineOrder()};
  Assignment assignment = LineAssignment();
  Fusion fusion = LineFusion();
  Runs runs = LineRuns();
  Program program = LineProgram();
  std::vector<Move>& moves = ordered.moves.moves;
  std::vector<int32_t>& events = ordered.order.events;
};

Status CheckAll(const Values& v, bool on = true) {
  const Collective collective = LineCollective();
  const Topology topology = Line();
  const PassVerifier verify(on, collective, topology);
  XCCL_RETURN_IF_ERROR(verify.Check("fold", v.schedule));
  XCCL_RETURN_IF_ERROR(verify.Check(v.paths));
  XCCL_RETURN_IF_ERROR(verify.Check(v.ordered.moves));
  XCCL_RETURN_IF_ERROR(verify.Check(v.ordered));
  XCCL_RETURN_IF_ERROR(verify.Check(v.assignment, v.paths));
  XCCL_RETURN_IF_ERROR(verify.Check(v.ordered, v.assignment, v.fusion, 2));
  if (on)
    XCCL_RETURN_IF_ERROR(
        verify.Check(v.ordered.moves, v.fusion, PlaceBuffers(v.ordered.moves, v.fusion, collective, 3)));
  XCCL_RETURN_IF_ERROR(verify.Check(v.ordered, v.fusion, v.runs, 16));
  XCCL_RETURN_IF_ERROR(verify.Check("instructions", v.program, false));
  return verify.Check("dependencies", v.program);
}

TEST(VerifyPasses, AcceptsARightLowering) { EXPECT_EQ(CheckAll(Values()).message(), ""); }

struct Rejection {
  void (*spoil)(Values&);
  const char* message;  // behind "lower: after "
};

constexpr Rejection kRejections[] = {
    {[](Values& v) { v.schedule.step[1] = 0; },
     "fold: [S3] step 0: rank 1 sends chunk 0, which it first holds at step 1 (and 3 more)"},
    {[](Values& v) { v.paths.paths[0].links = {LinkId(1)}; }, "paths: path 0 is no chain at link 1"},
    {[](Values& v) { v.paths.paths[0].dst = Rank(2); }, "paths: path 0 does not end at rank 2"},
    // Moves.
    {[](Values& v) { v.moves[0].feed = 2; },
     "moves: move 0 (chunk 0, rank 0 to 1) is sent 0 and received 0 times"},
    {[](Values& v) { v.moves[2].feed = kNoIndex; },
     "moves: move 2 (chunk 0, rank 1 to 2) sends what its rank does not have"},
    {[](Values& v) { v.moves[2].feed = 1; },
     "moves: move 2 (chunk 0, rank 1 to 2) is fed by move 1; expected 0, which wrote there last"},
    {[](Values& v) { v.moves[3].previous = 2; },
     "moves: move 3 (chunk 1, rank 1 to 2) writes behind move 2; expected -1, which wrote there last"},
    {[](Values& v) { v.moves[2].reduces = true; },
     "moves: move 2 (chunk 0, rank 1 to 2) adds to what is not there"},
    {[](Values& v) { v.moves[2].complete = true; },
     "moves: move 2 (chunk 0, rank 1 to 2) is no complete sum"},
    {[](Values& v) { v.moves[0].readers = 1; },
     "moves: move 0 (chunk 0, rank 0 to 1) has 1 readers; expected 2"},
    {[](Values& v) { v.moves[0].overwriter = 3; },
     "moves: move 0 (chunk 0, rank 0 to 1) has overwriter 3; expected -1"},
    {[](Values& v) { v.ordered.moves.copies.pop_back(); },
     "moves: rank 0 ends without its output of chunk 1"},
    // Order.
    {[](Values& v) { v.events.pop_back(); },
     "order: move 3 (chunk 1, rank 1 to 2) is sent 1 and received 0 times"},
    {[](Values& v) { std::swap(v.events[1], v.events[2]); },
     "order: move 1 (chunk 1, rank 0 to 1) is sent with 1 moves under way; expected at most 0"},
    {[](Values& v) { std::swap(v.events[4], v.events[7]); },
     "order: move 3 (chunk 1, rank 1 to 2) is not received in the order in which its connection sends"},
    {[](Values& v) { std::swap(v.events[1], v.events[3]); },
     "order: move 1 (chunk 1, rank 0 to 1) is sent with 1 moves under way; expected at most 0"},
    // Threadblocks.
    {[](Values& v) { v.assignment.blocks[Rank(1)][0].send_peer = Rank(0); },
     "threadblocks: the threadblocks of path 1 do not serve it"},
    {[](Values& v) { v.assignment.channel[0] = 1; },
     "threadblocks: the threadblocks of path 0 do not serve it"},
    {[](Values& v) {
       v.assignment.forwards_to = {kNoIndex, 0};
     },
     "threadblocks: path 1 is not sent on by the threadblock that receives it"},
    // Fusion: the second forward alone would be sent before the first.
    {[](Values& v) { v.fusion.recv_of[2] = kNoIndex; },
     "fuse: move 0 (chunk 0, rank 0 to 1) is not forwarded where it is received"},
    {[](Values& v) { v.fusion.send_of[0] = kNoIndex; },
     "fuse: move 2 (chunk 0, rank 1 to 2) is sent 0 and received 1 times"},
    // Runs.
    {[](Values& v) { v.runs.length[0] = 17; },
     "merge: move 0 (chunk 0, rank 0 to 1) has a run of 17; expected at most 16"},
    {[](Values& v) { v.runs.last[0] = true; },
     "merge: move 1 (chunk 1, rank 0 to 1) does not continue the run of move 0"},
    {[](Values& v) { v.runs.last[1] = false; },
     "merge: move 0 (chunk 0, rank 0 to 1) is sent 1 and received 0 times"},
    // Programs.
    {[](Values& v) { v.program.ranks[Rank(2)].threadblocks[0].instructions[0].count = 1; },
     "instructions: [P4] connection 1->2 channel 0: send 0 moves 2 chunks (rank 1 threadblock 0 instruction "
     "0), but receive 0 takes 1 (rank 2 threadblock 0 instruction 0)"},
    {[](Values& v) { v.program.ranks[Rank(0)].threadblocks.pop_back(); },
     "dependencies: [P8] rank 0 output slot 0: is never written; expected chunk 0 with the contributions of "
     "0"},
};

TEST(VerifyPasses, RejectsEverySpoiledValue) {
  for (const Rejection& rejection : kRejections) {
    Values values;
    rejection.spoil(values);
    const Status status = CheckAll(values);
    EXPECT_EQ(status.message(), std::string("lower: after ") + rejection.message);
    EXPECT_EQ(status.code(), StatusCode::kBug);
    EXPECT_TRUE(CheckAll(values, false).ok()) << rejection.message;
  }
}

TEST(VerifyPasses, RejectsASlotOfAnotherChunk) {
  const Topology topology = Line();
  // The slots of a gather of two chunks a rank are judged by a gather of three chunks a rank.
  const Collective two = testing::MakeCollective(CollectiveKind::kGather, 3, Rank(1)).WithChunks(2);
  const Collective three = testing::MakeCollective(CollectiveKind::kGather, 3, Rank(1)).WithChunks(3);
  const Buffers other = PlaceBuffers(Moves(), Fusion(), two, 3);
  Moves one;
  one.moves = {{.chunk = ChunkId(4), .src = Rank(2), .dst = Rank(1), .readers = 1}};
  EXPECT_EQ(PassVerifier(true, three, topology).Check(one, NoFusion(1), other),
            BugError("lower: after buffers: move 0 (chunk 4, rank 2 to 1) has a slot of another chunk"));
}

}  // namespace
}  // namespace xccl::lowering
