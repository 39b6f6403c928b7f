// The critical path of a simulation: the chain of events that ends with the last arrival. Each event of the
// chain starts when the event before it ends, so a plan becomes faster only if an event of the chain does.
// ir/simulate/trace.h and trace_program.h return the path with a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace xccl {

enum class PathKind : uint8_t {
  kTransfer,     // bytes pass a link
  kLatency,      // alpha of a link
  kOverhead,     // the cost of a message on a link
  kThreadblock,  // an instruction holds its threadblock
  kHandOff,      // from an instruction until another threadblock of its GPU goes on
  kHop,          // from the arrival of a message until its receiver can see it
  kLaunch,       // before the first instruction
};
inline constexpr size_t kNumPathKinds = 7;
std::string_view ToString(PathKind kind);  // "transfer"

struct PathPiece {
  PathKind kind = PathKind::kTransfer;
  int64_t start_ps = 0, end_ps = 0;
  std::optional<LinkId> link = std::nullopt;      // link of a transfer, a latency or an overhead
  std::optional<int32_t> message = std::nullopt;  // schedules: index in ScheduleTrace::messages
  std::optional<int32_t> block = std::nullopt;    // programs: the threadblock, by ProgramIndex
  int64_t ps() const { return end_ps - start_ps; }
  bool operator==(const PathPiece&) const = default;
};

// Invariants: the first piece starts at 0, every other piece starts where the piece before it ends, and the
// last piece ends at the time of the simulation. No piece is empty. Neighbouring pieces differ in more than
// their times.
struct CriticalPath {
  std::vector<PathPiece> pieces;
  // Whether the chain comes from a shorter run, because the simulation extrapolated a steady state. The
  // pieces are then stretched so that they end at the simulation's time.
  bool stretched = false;
};

// The part of the time that pieces of one kind take at one place.
struct PathShare {
  PathKind kind = PathKind::kTransfer;
  std::optional<LinkId> link = std::nullopt;
  std::optional<int32_t> block = std::nullopt;
  int64_t ps = 0;
  int64_t pieces = 0;
  bool operator==(const PathShare&) const = default;
};
// Returns the shares of the path, longest first; shares of equal length are ordered by kind, link and block.
std::vector<PathShare> SharesOf(const CriticalPath& path);

// The kinds of pieces that grow with the number of segments or passes: transfers alone, or all pieces but a
// program's launch.
enum class Elastic : uint8_t { kTransfers, kAllButLaunch };

// Returns the path that has these pieces, which come last first. Drops empty pieces, joins neighbours of one
// place, and stretches the elastic pieces so that the last piece ends at `time_ps`. Stretches all pieces if
// the elastic pieces do not suffice.
CriticalPath MakeCriticalPath(std::vector<PathPiece> last_first, int64_t time_ps, Elastic elastic);

}  // namespace xccl
