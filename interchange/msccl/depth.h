// How many chunks executors of MSCCL XML move at a time, and whether a program waits in a circle because of
// it. From mscclSetupCount of msccl-executor-nccl c6f6b36 and of RCCL 0cbce2a, and msccl_interpreter.h of
// microsoft/msccl b23e9cd: a step of `cnt` chunks is one message while its chunks are small, and one message
// a chunk where they are large. Private to writer and reader.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/ids.h"
#include "ir/analysis/program_index.h"
#include "ir/program.h"

namespace xccl::msccl {

inline constexpr int32_t kMostCount = 71;  // chunks of a step

// Messages under way on a connection: of NCCL's 8 slots protocol Simple uses 4 a message.
inline constexpr int32_t kSimpleDepth = 2;
int32_t Depth(Protocol protocol);
// Bytes of a chunk that are moved at a time, with NCCL's buffers (4 MiB in protocol Simple).
int64_t PieceBytes(Protocol protocol);
// Chunks that are one message, at a size that is `chunks` chunks.
int32_t ChunksAtATime(Protocol protocol, int64_t size_bytes, int64_t chunks);
// The largest size at which so many are.
int64_t LargestSize(Protocol protocol, int32_t at_a_time, int64_t chunks);

// How many chunks an instruction of a rank moves.
using ChunksOf = std::function<int64_t(Rank, const Instruction&)>;

// An instruction that waits forever if `at_a_time` chunks are a message; none: all instructions end. Checks
// rule P5. Cost: linear in the messages.
std::optional<ProgramSite> WaitsForever(const Program& program, const ChunksOf& chunks, int32_t at_a_time);
// The fewest chunks of a message with which all instructions end; none: they never do.
std::optional<int32_t> FewestAtATime(const Program& program, const ChunksOf& chunks);

}  // namespace xccl::msccl
