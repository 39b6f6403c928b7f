// A matrix of demands between n senders and n receivers as stages in which everyone sends to one and receives
// from one (Birkhoff, 1946; von Neumann): no receiver is crowded, and the stages together last as long as the
// fullest row or column.
#pragma once

#include <cstdint>
#include <vector>

namespace xccl {

struct BirkhoffStage {
  std::vector<int32_t> to;  // by sender
  int64_t amount = 0;       // what each sender sends, padding included
};

// demands: n x n, row = sender, none negative; the diagonal may be padded with, as any other place. Amounts
// add up to the largest row or column sum. At most n^2 - 2n + 2 stages; cost: stages x n^2 at worst, mostly
// stages x n.
std::vector<BirkhoffStage> BirkhoffStages(const std::vector<int64_t>& demands, int32_t n);

}  // namespace xccl
