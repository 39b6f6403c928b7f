#include "base/random.h"

#include <sys/random.h>
#include <unistd.h>

#include <bit>

#include "base/check.h"

namespace xccl {

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {
    word = Mix(seed);
    seed += kGolden;
  }
}

uint64_t Random::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  XCCL_CHECK(bound > 0);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
}

double Random::Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

// The standard library's would need a C library of 2022.
uint64_t SystemRandom() {
  uint64_t drawn = 0;
  XCCL_CHECK(getrandom(&drawn, sizeof drawn, 0) == static_cast<ssize_t>(sizeof drawn));
  return drawn;
}

uint64_t ProcessNumber() {
  static const uint64_t drawn = SystemRandom();
  return drawn + static_cast<uint64_t>(getpid());
}

}  // namespace xccl
