// Chakra execution traces of a program, one a rank, for simulators that take them (ASTRA-sim): the schema of
// version 0.0.4, a GlobalMetadata and then Nodes, each after its length as a varint. docs/interchange.md.
//
// Every message of the program is a COMM_SEND_NODE at its sender and a COMM_RECV_NODE at its receiver, with
// comm_src, comm_dst, comm_size and a comm_tag that no other message of the two ranks has. A message of a
// group is one for every member. A node depends on the nodes that its threadblock and the instruction's
// dependencies make it wait for. Copies and reductions within a rank take no time and are no nodes: a node
// that would wait for one waits for that one's dependencies. Slots are not limited, and empty messages are
// left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/program.h"

namespace xccl {

inline constexpr int64_t kMostChakraNodes = 1 << 24;  // nodes of all ranks: about 1.5 GB

// The traces' bytes, by rank. `size_bytes`: nccl-tests' size, in elements of 4 bytes. Requires: the program
// verifies. Errors: kLimit for more than kMostChakraNodes. Cost: linear in messages × passes.
StatusOr<std::vector<std::string>> ChakraTraces(const LoweredProgram& lowered, int64_t size_bytes,
                                                const std::string& title);

}  // namespace xccl
