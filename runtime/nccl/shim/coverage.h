// The calls that the shim runs instead of NCCL, since a plan book has a plan for them. The answer follows
// only from values that are equal on all ranks of a call, never from pointers or from the rank that asks.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "base/status.h"
#include "ir/collective.h"
#include "runtime/plan_book.h"

namespace xccl::nccl_shim {

// A collective as nccl.h counts and numbers it.
struct NcclCall {
  CollectiveKind kind = CollectiveKind::kAllreduce;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  int type = 0, op = 0, root = 0;  // op, root: 0 where there is none
  void* stream = nullptr;
};

class Coverage {
 public:
  // Errors: those of ReadPlanBook.
  static StatusOr<Coverage> Read(const std::string& book);

  const std::string& directory() const { return book_.directory; }
  // The collectives that it has plans of for so many ranks, as their names.
  std::set<std::string> Collectives(int ranks) const;
  // Null where a plan serves the call, else why none does. Allocates nothing.
  const char* WhyNot(const NcclCall& call, int ranks) const;

 private:
  explicit Coverage(PlanBook book) : book_(std::move(book)) {}
  PlanBook book_;
};

// Bytes as nccl-tests counts them. Requires: a type and a count that IsWellFormed knows.
int64_t SizeBytes(const NcclCall& call, int ranks);
// NCCL itself refuses other calls, or has nothing to do.
bool IsWellFormed(const NcclCall& call, int ranks);

}  // namespace xccl::nccl_shim
