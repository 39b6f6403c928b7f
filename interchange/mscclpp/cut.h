// Cuts the chunks of a program into the equal chunks of an MSCCL++ plan: a chunk is a run of them, and every
// instance of a threadblock has its own equal share of each run. Private to the writer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl::mscclpp {

// Chunks [begin, begin + size) of a buffer.
struct Span {
  int64_t begin = 0, size = 0;
  bool operator==(const Span&) const = default;
};

inline constexpr int32_t kAllCopies = -1;  // in place of a copy

// Immutable. The program and the collective must outlive it.
class Cut {
 public:
  // `pipelined`: all spans have one size, so that one loop cuts them all into segments. Errors:
  // kInvalidInput after `name` where too many chunks are needed.
  static StatusOr<Cut> Make(const Program& program, const Collective& collective, bool pipelined,
                            const std::string& name);

  int32_t copies() const { return copies_; }
  int64_t span_size() const { return span_; }               // size of every span, where pipelined
  int64_t spans_of_largest() const { return most_spans_; }  // spans of a copy of the largest chunk
  // Chunks of a rank's input and output by the sizes that callers pass, also for a rank without that buffer:
  // the executor divides by them.
  int64_t NominalInput() const { return nominal_[0] * unit_; }
  int64_t NominalOutput() const { return nominal_[1] * unit_; }
  int64_t Width(Rank r, BufferKind buffer) const { return offsets_[r][static_cast<size_t>(buffer)].back(); }
  // A copy's share of `count` slots: one span where it is in one piece. kAllCopies: all of it, as one.
  std::vector<Span> Spans(Rank r, const Operand& operand, int32_t count, int32_t copy) const;
  int64_t SizeOf(Rank r, const Operand& operand, int32_t count) const;  // all spans of one copy

 private:
  Cut() = default;
  Status FindUnit(const Collective& collective, const std::string& name);

  bool pipelined_ = false;
  int32_t copies_ = 1;
  int64_t unit_ = 1, span_ = 1;  // chunks of a part; of a span
  int64_t most_spans_ = 1;
  std::array<int64_t, 2> nominal_ = {1, 1};
  IdVector<Rank, std::array<std::vector<int64_t>, 3>> offsets_;  // by buffer and slot: chunks before it
};

}  // namespace xccl::mscclpp
