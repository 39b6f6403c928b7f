// Rows that stay in their home's memory until every rank that needs them has copied them from there: ranks
// of one host copy each row once, and wait for no slots. Threads read the memory as it is; processes ask the
// kernel for it (process_vm_readv), which may refuse. Internal to runtime/experts/rank.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dispatch/received.h"
#include "runtime/experts/rows.h"

namespace xccl::dispatch {

// In the home's memory during a call.
struct Lender {
  uint32_t number = 0;  // random: a reader that finds it has found the right process
  RowSource rows;
};

// The home sends a loan in place of a row. It has as many bytes as the smallest slot holds of one.
struct Loan {
  const Lender* lender = nullptr;
  int32_t process = 0;
  uint32_t number = 0;  // the lender's
};
static_assert(sizeof(Loan) == 16);

// Copies the rows that a rank needs to their places; `loans` by row received. Own rows are among them.
// `threads`: all ranks are threads of this process. False: some could not be read.
bool TakeLent(const Received& received, const std::vector<Loan>& loans, int32_t rank, const Lender& own,
              bool threads, const RowPlace& to);

}  // namespace xccl::dispatch
