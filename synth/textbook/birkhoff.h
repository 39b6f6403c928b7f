// Splits a matrix of demands between n senders and n receivers into stages (Birkhoff, 1946; von Neumann). In
// a stage each sender sends to one receiver, and each receiver receives from one sender. So no receiver is
// crowded. The stages together last as long as the fullest row or column of the matrix.
#pragma once

#include <cstdint>
#include <vector>

namespace xccl {

struct BirkhoffStage {
  std::vector<int32_t> to;  // by sender: the receiver
  int64_t amount = 0;       // amount that each sender sends, including padding
};

// `demands` is an n x n matrix with a row for each sender and no negative entry. Padding may fall on any
// entry, also on the diagonal. The amounts of all stages add up to the largest row or column sum. There are
// at most n^2 - 2n + 2 stages. Time: at worst n^2 for each entry above 0 after padding, mostly n.
std::vector<BirkhoffStage> BirkhoffStages(const std::vector<int64_t>& demands, int32_t n);

}  // namespace xccl
