// The code of one block with its numbers taken out, so that blocks that do the same at other places are
// recognised and share it. In: one block of a KernelForm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "ir/kernel/kernel_form.h"
#include "ir/program.h"

namespace xccl {

struct BlockText {
  std::string code;                   // kNumber where a number stands, kComment where a comment
  std::vector<int64_t> numbers;       // in order
  std::vector<std::string> comments;  // in order
  int32_t ends = 0;                   // of connections
};
inline constexpr char kNumber = '\1', kComment = '\2';

// The body of a function that gets a Block `b` and the numbers.
BlockText TextOf(const Program& program, const KernelForm& form, Rank rank, const KernelBlock& block);

}  // namespace xccl
