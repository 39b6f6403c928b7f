// Seeded pseudo-random numbers that are the same on every machine, unlike the standard library's
// distributions. SplitMix64 seeds xoshiro256** (Blackman and Vigna, 2018).
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace xccl {

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;  // 2^64 over the golden ratio, odd

// Spreads a number over 64 bits: equal numbers become equal ones, near ones far apart. The step of SplitMix64
// (Steele, Lea and Flood, 2014).
inline uint64_t Mix(uint64_t x) {
  x += kGolden;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t Next();
  // Uniform in [0, bound). Requires: bound > 0.
  uint64_t Below(uint64_t bound);
  double Unit();  // uniform in [0, 1)
  template <typename T>
  void Shuffle(std::span<T> items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  uint64_t state_[4];
};

// 64 random bits from the system; not repeatable.
uint64_t SystemRandom();
// A number that no other process has. A process's own number may be that of one in another container, and a
// fork has the same random one.
uint64_t ProcessNumber();

}  // namespace xccl
