// The radix of algorithms that go k-fold in place of twofold.
#pragma once

#include <cstdint>
#include <limits>

namespace xccl {

// The radix below n, at least 2, for which `time_ps` says the least, smaller ones first; the search ends
// where the sends that it looks at, k / 2 x sends_of_two for each k, come to 100,000.
template <typename TimePs>
int32_t BestRadix(int32_t n, int64_t sends_of_two, TimePs time_ps) {
  constexpr int32_t kRadices[] = {2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64};
  constexpr int64_t kMostSends = 100'000;
  constexpr int32_t kMostRanks = 1024;
  if (n > kMostRanks) return 2;
  int32_t best = 2;
  double best_ps = std::numeric_limits<double>::infinity();
  int64_t sends = 0;
  for (const int32_t k : kRadices) {
    sends += sends_of_two * k / 2;
    if (k > 2 && (k >= n || sends > kMostSends)) break;
    const double ps = time_ps(k);
    if (ps >= best_ps) continue;
    best = k;
    best_ps = ps;
  }
  return best;
}

}  // namespace xccl
