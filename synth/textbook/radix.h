// Chooses the radix k of algorithms in which the number of ranks reached grows k-fold in each step.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "synth/common/cost_model.h"
#include "synth/textbook/textbook.h"

namespace xccl {

// Returns the radix with the least `time_ps`; of equally good radices, the smallest. The radix is at least 2,
// and below n if n > 2. Tries all radices up to 8, then four for each doubling, up to 64. Stops before more
// than kManyTransfers sends are measured in total; radix k counts as k / 2 × sends_of_two sends. Returns 2 if
// n > kMostMeasured.
template <typename TimePs>
int32_t BestRadix(int32_t n, int64_t sends_of_two, TimePs time_ps) {
  if (n > kMostMeasured) return 2;
  int32_t best = 2;
  double best_ps = std::numeric_limits<double>::infinity();
  int64_t sends = 0;
  for (int32_t k = 2; k <= 64;
       k += std::max(1, static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(k)) / 4))) {
    sends += sends_of_two * k / 2;
    if (k > 2 && (k >= n || sends > kManyTransfers)) break;
    const double ps = time_ps(k);
    if (ps >= best_ps) continue;
    best = k;
    best_ps = ps;
  }
  return best;
}

}  // namespace xccl
