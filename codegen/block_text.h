// The code of one block without its numbers, so that blocks that differ only in numbers can share it. Made
// from one block of a KernelForm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "ir/kernel/kernel_form.h"
#include "ir/program.h"

namespace xccl {

struct BlockText {
  std::string code;                   // kNumber in place of each number, kComment in place of each comment
  std::vector<int64_t> numbers;       // in order
  std::vector<std::string> comments;  // in order
  int32_t ends = 0;                   // number of ends of connections
};
inline constexpr char kNumber = '\1', kComment = '\2';

// The body of a function whose parameters are a Block `b` and the numbers.
BlockText TextOf(const Program& program, const KernelForm& form, Rank rank, const KernelBlock& block);

}  // namespace xccl
