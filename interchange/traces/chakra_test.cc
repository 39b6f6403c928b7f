// Reads traces back and replays them as a simulator does: a send may start when what it depends on is done, a
// receive is done when its message was sent.
#include "interchange/traces/chakra.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "interchange/traces/chakra.pb.h"
#include "ir/lower/testing/checked.h"
#include "ir/sizes.h"
#include "ir/testing/programs.h"

namespace xccl {
namespace {

LoweredProgram Make(CollectiveKind kind, int32_t ranks, Algorithm algorithm) {
  const Topology topology = FullMesh(ranks);
  const Collective collective = MakeCollective(kind, ranks);
  return {collective,
          LowerChecked(*HandSchedule(algorithm, collective, topology), collective, topology).value()};
}

struct Trace {
  chakra::GlobalMetadata metadata;
  std::vector<chakra::Node> nodes;
};

Trace Read(const std::string& bytes) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  Trace trace;
  bool end = false;
  EXPECT_TRUE(google::protobuf::util::ParseDelimitedFromZeroCopyStream(&trace.metadata, &stream, &end));
  while (true) {
    chakra::Node node;
    if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(&node, &stream, &end)) break;
    trace.nodes.push_back(node);
  }
  EXPECT_TRUE(end);
  return trace;
}

const chakra::AttributeProto& Attribute(const chakra::Node& node, const std::string& name) {
  for (const chakra::AttributeProto& attribute : node.attr())
    if (attribute.name() == name) return attribute;
  ADD_FAILURE() << "no attribute " << name;
  return node.attr(0);
}

// A message: source, destination, tag, bytes.
using Message = std::tuple<int32_t, int32_t, int32_t, int64_t>;
Message MessageOf(const chakra::Node& node) {
  EXPECT_FALSE(Attribute(node, "is_cpu_op").bool_val());
  return {Attribute(node, "comm_src").int32_val(), Attribute(node, "comm_dst").int32_val(),
          Attribute(node, "comm_tag").int32_val(), Attribute(node, "comm_size").int64_val()};
}

// Returns the bytes that were sent, or -1 where nodes are left that wait for ever.
int64_t Replay(const std::vector<std::string>& traces) {
  std::set<Message> sent;
  int64_t bytes = 0;
  std::vector<std::vector<chakra::Node>> left;
  std::vector<std::set<uint64_t>> done(traces.size());
  for (const std::string& trace : traces) {
    const Trace read = Read(trace);
    EXPECT_EQ(read.metadata.version(), "0.0.4");
    EXPECT_EQ(read.metadata.attr(0).string_val(), "title");
    left.push_back(read.nodes);
  }
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t r = 0; r < left.size(); ++r) {
      std::vector<chakra::Node> waiting;
      for (const chakra::Node& node : left[r]) {
        bool ready = true;
        for (const uint64_t on : node.data_deps()) ready = ready && done[r].contains(on);
        const Message message = MessageOf(node);
        if (node.type() == chakra::COMM_SEND_NODE) {
          EXPECT_EQ(std::get<0>(message), static_cast<int32_t>(r));
          if (ready) {
            EXPECT_TRUE(sent.insert(message).second) << "two messages with one tag";
            bytes += std::get<3>(message);
          }
        } else {
          EXPECT_EQ(std::get<1>(message), static_cast<int32_t>(r));
          ready = ready && sent.erase(message) == 1;
        }
        if (ready) {
          EXPECT_TRUE(done[r].insert(node.id()).second);
          moved = true;
        } else {
          waiting.push_back(node);
        }
      }
      left[r] = std::move(waiting);
    }
  }
  for (const auto& nodes : left)
    if (!nodes.empty()) return -1;
  return sent.empty() ? bytes : -1;
}

TEST(Chakra, EveryMessageIsSentAndReceivedOnce) {
  const int64_t n = 4, size = 1 << 20;
  const auto sent = [&](const LoweredProgram& lowered) {
    const auto traces = ChakraTraces(lowered, size, "title");
    EXPECT_TRUE(traces.ok());
    return Replay(*traces);
  };
  // Every rank receives the others' shares once; an allreduce sends the buffer up and down.
  EXPECT_EQ(sent(Make(CollectiveKind::kAllgather, n, Algorithm::kRing)), n * (n - 1) * size / n);
  EXPECT_EQ(sent(Make(CollectiveKind::kAllreduce, n, Algorithm::kRing)), 2 * (n - 1) * size);
  EXPECT_EQ(sent(Make(CollectiveKind::kAlltoall, n, Algorithm::kDirect)), n * (n - 1) * size / n);
  EXPECT_EQ(sent(Make(CollectiveKind::kBroadcast, n, Algorithm::kDirect)), (n - 1) * size);
}

TEST(Chakra, PassesAreCutAndCopiesOverlap) {
  LoweredProgram lowered = Make(CollectiveKind::kAllgather, 4, Algorithm::kRing);
  lowered.program.segment_bytes = 4096;
  lowered.program.instances = 3;
  const int64_t size = 10 * 4096 * 4 + 400;
  ASSERT_EQ(NumPasses(lowered.program, CollectiveSizes(lowered.collective, size)), 11);
  const auto traces = ChakraTraces(lowered, size, "title");
  ASSERT_TRUE(traces.ok());
  EXPECT_EQ(Replay(*traces), 3 * CollectiveSizes(lowered.collective, size).size_bytes());
  // The first message of each copy waits for nothing.
  int32_t free = 0;
  for (const chakra::Node& node : Read((*traces)[0]).nodes)
    if (node.type() == chakra::COMM_SEND_NODE && node.data_deps().empty()) ++free;
  EXPECT_EQ(free, 3);
}

// Simulators start sends in the order of nodes: ranks that begin with one and the same peer would all wait
// for it.
TEST(Chakra, RanksBeginWithThePeersBehindThem) {
  constexpr int32_t kRanks = 5;
  const auto traces =
      ChakraTraces(Make(CollectiveKind::kAlltoall, kRanks, Algorithm::kDirect), 1 << 20, "title");
  ASSERT_TRUE(traces.ok());
  for (int32_t r = 0; r < kRanks; ++r) {
    std::vector<int32_t> to, from;
    for (const chakra::Node& node : Read((*traces)[static_cast<size_t>(r)]).nodes)
      (node.type() == chakra::COMM_SEND_NODE ? to : from)
          .push_back(node.type() == chakra::COMM_SEND_NODE ? std::get<1>(MessageOf(node))
                                                           : std::get<0>(MessageOf(node)));
    for (int32_t k = 1; k < kRanks; ++k) {
      EXPECT_EQ(to[static_cast<size_t>(k) - 1], (r + k) % kRanks);
      EXPECT_EQ(from[static_cast<size_t>(k) - 1], (r + kRanks - k) % kRanks);
    }
  }
}

TEST(Chakra, EmptyMessagesAreLeftOut) {
  const auto traces = ChakraTraces(Make(CollectiveKind::kAllgather, 4, Algorithm::kRing), 0, "title");
  ASSERT_TRUE(traces.ok());
  for (const std::string& trace : *traces) EXPECT_TRUE(Read(trace).nodes.empty());
}

TEST(Chakra, RefusesTooManyNodes) {
  LoweredProgram lowered = Make(CollectiveKind::kAllgather, 4, Algorithm::kRing);
  lowered.program.segment_bytes = 16;
  const auto traces = ChakraTraces(lowered, int64_t{64} << 20, "title");
  EXPECT_EQ(traces.status(),
            LimitReached("chakra: 25165824 nodes in 1048576 passes; expected at most 16777216; "
                         "hint: a smaller size"));
}

}  // namespace
}  // namespace xccl
