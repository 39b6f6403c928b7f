// A directory of plans with an index: which plan serves which call. The index is `index.json`:
//   {"format":1, "plans":[{"file":"ar-small.plan.json", "collective":"allreduce", "ranks":8, "root":0,
//     "min_bytes":0, "max_bytes":1048576, "types":"any", "in_place":"both"}, ...]}
// root only for rooted kinds; max_bytes (inclusive) is left out where there is no end; types is any, floating
// or integer; in_place is both, only or never; kernel, left out where there is none, is a file with the
// plan's generated CUDA source; cubins, likewise, is what was compiled of it ahead of time:
//   "cubins":[{"file":"ar.sm_90.float.sum.cubin", "arch":90, "type":"float", "op":"sum",
//     "made_from":"0f1e2d3c4b5a6978"}, ...]
// made_from being a hash of the source and the headers that it includes (runtime/cuda/kernel_source.h). The
// first entry that serves a call wins.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"

namespace xccl {

// The largest index.json in bytes; it has room for tens of thousands of plans. Parsing takes thirty times as
// much memory.
inline constexpr int64_t kMostIndexBytes = 16 << 20;

enum class TypeClass : uint8_t { kAny, kFloating, kInteger };
enum class InPlaceMode : uint8_t { kBoth, kOnly, kNever };

struct PlanCubin {
  std::string file;   // within the book's directory
  int32_t arch = 90;  // compute capability, major * 10 + minor
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  uint64_t made_from = 0;
  bool operator==(const PlanCubin&) const = default;
};

struct PlanBookEntry {
  std::string file;  // within the book's directory: no slashes
  CollectiveKind collective = CollectiveKind::kAllreduce;
  int32_t ranks = 0;
  std::optional<Rank> root;
  int64_t min_bytes = 0;  // nccl-tests' size
  std::optional<int64_t> max_bytes;
  TypeClass types = TypeClass::kAny;
  InPlaceMode in_place = InPlaceMode::kBoth;
  std::string kernel;             // as file; empty: none
  std::vector<PlanCubin> cubins;  // the kernel's cubins
  bool operator==(const PlanBookEntry&) const = default;
};

struct PlanBook {
  std::string directory;
  std::vector<PlanBookEntry> entries;  // in order of preference
  bool operator==(const PlanBook&) const = default;
  std::string PathOf(const PlanBookEntry& entry) const { return directory + "/" + entry.file; }
  std::string KernelPathOf(const PlanBookEntry& entry) const { return directory + "/" + entry.kernel; }
  std::vector<PlanCubin> CubinPathsOf(const PlanBookEntry& entry) const;  // their files with the directory
};

// A call to be served.
struct PlanQuery {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  int32_t ranks = 0;
  std::optional<Rank> root;
  int64_t size_bytes = 0;
  DataType type = DataType::kFloat;
  std::optional<bool> in_place = false;  // absent: it differs by rank
};

bool IsPlanBook(const std::string& path);  // a directory with an index.json
// Reads the index alone. Errors: kInvalidInput with the file, the key and what was expected.
StatusOr<PlanBook> ReadPlanBook(const std::string& directory);
// The source of an entry's kernel. The source and the entry's cubins are programs, and index and plan choose
// among them; all are held to CheckTrusted of base/files.h. Requires: entry.kernel is not empty. Errors:
// kInvalidInput.
StatusOr<std::string> ReadKernel(const PlanBook& book, const PlanBookEntry& entry);
// Makes the directory where there is none, and checks that an index can be written there.
Status MakePlanBookDirectory(const std::string& directory);
// Writes the index atomically; the directory and the plans must exist. Equal books give equal bytes.
Status WritePlanBook(const PlanBook& book);
// The index of the entry that serves a call, if there is one. A call whose ranks differ in being in place
// gets the first entry for both; if there is none, the first of any. Allocates nothing.
std::optional<size_t> FindPlan(const PlanBook& book, const PlanQuery& query);
// As FindPlan. Errors: kInvalidInput naming the call and the book's plans for its collective.
StatusOr<size_t> SelectPlan(const PlanBook& book, const PlanQuery& query);
// SelectPlan's error, for several books in the order in which they were searched.
Status NoPlan(std::span<const PlanBook* const> books, const PlanQuery& query);

}  // namespace xccl
