// Calls of MSCCL++ plans in a row: packets and their places, and ports that read late.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "interchange/common/foreign.h"
#include "interchange/mscclpp/file.h"
#include "interchange/mscclpp/read.h"
#include "interchange/mscclpp/test_plans.h"
#include "ir/program.h"
#include "ir/testing/check_runs.h"

namespace xccl {
namespace {

// ---- packets ----

// The packets that come back were made of the packets that were sent, so the chunks that they overwrite have
// been read.
TEST(MscclppCallsTest, PacketsOfPeersOrderWhatTheyAreMadeOf) {
  File file = AllPairsOfPackets(4);
  file.in_place = true;
  // Puts and stores in threadblocks that nothing joins.
  for (Gpu& gpu : file.gpus) {
    gpu.blocks.push_back(gpu.blocks[0]);
    std::vector<Op>& first = gpu.blocks[0].ops;
    gpu.blocks[1].ops.assign(first.begin() + 4, first.end());
    first.resize(4);
  }
  const StatusOr<Imported> read = ReadMscclppJson(WriteFile(file), {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  CheckRuns(read->lowered);
  // The packets that come back were not made of the packets that go to another peer.
  for (Gpu& gpu : file.gpus) std::swap(gpu.blocks[1].ops[0].dst, gpu.blocks[1].ops[1].dst);
  EXPECT_NE(Refused(file).find("races with"), std::string::npos) << Refused(file);
}

// Rank r makes packets of its input in its own scratch, and sends them on from there to all.
File PacketsOfItsOwn(int32_t ranks, OpName sends) {
  File file = AllToAll("allgather", ranks, 1, ranks, ranks, kScratch);
  file.packets = file.double_scratch = true;
  for (int32_t r = 0; r < ranks; ++r) {
    Gpu& gpu = file.gpus[static_cast<size_t>(r)];
    std::vector<Op>& ops = gpu.blocks[0].ops;
    ops = {Data(OpName::kCpkt, {Local(kIn, 0)}, {Local(kScratch, r)})};
    Op send = Data(sends, {Local(kScratch, r)}, {});
    if (sends == OpName::kGstorePkt) {
      gpu.switches.push_back({kScratch, ranks, All(ranks)});
      gpu.blocks[0].channels[2] = {0};
      send.type = ChannelType::kSwitch;
      send.dst = {{Piece::Where::kSwitch, kScratch, 0, r, 1}};
    }
    for (int32_t p = 0; p + 1 < ranks && sends != OpName::kGstorePkt; ++p) send.dst.push_back(Remote(p, r));
    ops.push_back(send);
    for (int32_t p = 0; p < ranks; ++p)
      ops.push_back(Data(OpName::kUpkt, {Local(kScratch, p)}, {Local(kOut, p)}));
    for (const size_t at : {size_t{0}, ops.size() - 1}) ops[at].type = ChannelType::kNone;
  }
  return file;
}

TEST(MscclppCallsTest, OwnPacketsArePolledForAsThoseOfPeers) {
  for (const OpName sends : {OpName::kRppkt, OpName::kGstorePkt}) {
    const StatusOr<Imported> read = ReadMscclppJson(WriteFile(PacketsOfItsOwn(4, sends)), {});
    ASSERT_TRUE(read.ok()) << read.status().message();
    CheckRuns(read->lowered);
  }
}

// Whoever has the sum back knows that what it was made of has been read, so that the next call may be put
// there.
TEST(MscclppCallsTest, SumsThatComeBackFreeThePlaceOfTheirPackets) {
  File file = AllPairsOfPackets(4);
  EXPECT_EQ(WrongInARow(file), "");
  file.double_scratch = false;
  EXPECT_EQ(WrongInARow(file), "");
}

TEST(MscclppCallsTest, PacketsOfTheNextCallsHaveAPlace) {
  File file = PacketsOfItsOwn(2, OpName::kRppkt);
  file.double_scratch = false;
  EXPECT_EQ(
      WrongInARow(file),
      "p: rank 1 threadblock 0 op 1 (rppkt) of call 2: overwrites the packets of call 1 in chunk 1 of rank "
      "0's scratch, which it may not have read yet; expected a wait for an answer before it");
  file = PacketsOfItsOwn(2, OpName::kRppkt);
  file.gpus[1].scratch = 4;
  EXPECT_EQ(
      Refused(file),
      "p: rank 0 threadblock 0 op 1 (rppkt): puts packets behind half of its own rank's scratch, of 2 "
      "chunks, in every second call, and rank 1, with 4, looks behind half of its own; expected as many "
      "scratch_chunks at all ranks");
  file = PacketsOfItsOwn(2, OpName::kRppkt);
  Ops(file).push_back(Data(OpName::kPut, {Local(kIn, 0)}, {Remote(0, 1)}));
  EXPECT_EQ(
      Refused(file),
      "p: rank 0 threadblock 0 op 4 (put): plain data in the first half of a peer's scratch, where every "
      "second call looks in the second; expected packets, or use_double_scratch_buffer false");
}

// ---- ports ----

// Swap over ports. A port reads the data of a put at any time until they have arrived.
File SwapOverPorts(OpName put) {
  File file = Swap();
  for (Gpu& gpu : file.gpus) {
    gpu.peers = {std::vector<int32_t>{}, gpu.peers[0]};
    gpu.remotes[0].types = {ChannelType::kPort};
    Block& block = gpu.blocks[0];
    std::swap(block.channels[0], block.channels[1]);
    std::swap(block.remotes[0], block.remotes[1]);
    for (Op& op : block.ops)
      if (op.type == ChannelType::kMemory) op.type = ChannelType::kPort;
    block.ops[3].name = put;
    if (put != OpName::kPut) block.ops.erase(block.ops.begin() + 4, block.ops.begin() + 6);
    // An answer: the other rank has the data of the put, so the port has read them.
    Op signal = block.ops[0], wait = block.ops[1];
    if (put != OpName::kPwsf) block.ops.insert(block.ops.end(), {Op{}, signal, wait});
  }
  return file;
}

TEST(MscclppCallsTest, PortsReadLate) {
  for (const OpName put : {OpName::kPut, OpName::kPws, OpName::kPwsf}) {
    const StatusOr<Imported> read = ReadMscclppJson(WriteFile(SwapOverPorts(put)), {.file = "p"});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->warnings,
              put != OpName::kPwsf
                  ? std::vector<std::string>()
                  : std::vector<std::string>{"p: rank 0 threadblock 0 op 3 (pwsf) and 1 more: executors from "
                                             "be6a941 (August 2025) to before dc0b8d7 (June 2026) put from a "
                                             "wrong address"});
  }
  // Without an answer, the caller may write over the input.
  File file = SwapOverPorts(OpName::kPws);
  for (size_t r = 0; r < 2; ++r) Ops(file, r).resize(Ops(file, r).size() - 3);
  EXPECT_EQ(WrongInARow(file),
            "p: rank 0's caller after call 1: overwrites what a port may not have read yet for rank 0 "
            "threadblock 0 op 3 (pws); expected a wait for an answer before it");
}

// Every channel has a queue of its own.
TEST(MscclppCallsTest, PortsSignalOnlyWhatTheirOwnChannelPuts) {
  File file = SwapOverPorts(OpName::kPut);
  for (Gpu& gpu : file.gpus) {
    gpu.peers[1].push_back(gpu.peers[1][0]);
    gpu.blocks[0].channels[1] = {0, 1};
    gpu.blocks[0].ops[5].channels = {1};
    gpu.blocks[0].ops[6].channels = {1};
    gpu.blocks[0].ops.resize(8);
  }
  EXPECT_EQ(
      Refused(file),
      "p: rank 1 threadblock 0 op 3 (put): nothing at rank 0 waits for what it puts into chunk 1 of the "
      "output; expected a signal and a wait");
}

// The caller may have the output of the call before in hand when the other rank's next call puts into it.
TEST(MscclppCallsTest, OutputsAreTheCallersUntilItsKernelBegins) {
  File file = Swap();
  EXPECT_EQ(WrongInARow(file), "");
  for (size_t r = 0; r < 2; ++r) Ops(file, r).erase(Ops(file, r).begin(), Ops(file, r).begin() + 2);
  EXPECT_EQ(
      WrongInARow(file),
      "p: rank 0's caller after call 1: races with rank 1 threadblock 0 op 1 (put) of call 2 for chunk 1 of "
      "rank 0's output; expected a nop, a barrier or signals between them");
}

TEST(MscclppCallsTest, AFlushDoesNothing) {
  File file = Swap();
  Ops(file).push_back(Sync(OpName::kFlush, {0}));
  const StatusOr<Imported> read = ReadMscclppJson(WriteFile(file), {.file = "p"});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->warnings, std::vector<std::string>{
                                "p: rank 0 threadblock 0 op 8 (flush): the executor's flush does nothing"});
}

// Ports put packets as they lie in scratch.
TEST(MscclppCallsTest, PortsPutPacketsOfScratch) {
  File file = PacketsOfItsOwn(2, OpName::kPpkt);
  for (Gpu& gpu : file.gpus) {
    gpu.peers = {std::vector<int32_t>{}, gpu.peers[0]};
    gpu.remotes[0].types = {ChannelType::kPort};
    Block& block = gpu.blocks[0];
    std::swap(block.channels[0], block.channels[1]);
    std::swap(block.remotes[0], block.remotes[1]);
    block.ops[1].type = ChannelType::kPort;
    block.ops[1].channels = {0};
    for (size_t at = 2; at < block.ops.size(); ++at) block.ops[at].type = ChannelType::kNone;
    block.ops.insert(block.ops.begin() + 1, Op{});
  }
  const StatusOr<Imported> read = ReadMscclppJson(WriteFile(file), {.file = "p"});
  ASSERT_TRUE(read.ok()) << read.status().message();
  CheckRuns(read->lowered);
  EXPECT_EQ(read->warnings, std::vector<std::string>{
                                "p: rank 0 threadblock 0 op 2 (ppkt) and 1 more: the executor takes the "
                                "source from the first plan that its process has run: right for that one "
                                "alone"});
  File early = file;
  Ops(early).erase(Ops(early).begin() + 1);
  EXPECT_NE(Refused(early).find("races with rank 0 threadblock 0 op 0 (cpkt)"), std::string::npos)
      << Refused(early);
  file.gpus[0].blocks[0].ops[2].src[0].buffer = kIn;
  file.gpus[0].blocks[0].ops[2].src[0].index = 0;
  EXPECT_EQ(Refused(file),
            "p: rank 0 threadblock 0 op 2 (ppkt): the executor's ports put the input as if it were packets; "
            "expected packets in scratch, or a memory channel");
}

}  // namespace
}  // namespace xccl
