// Swing (De Sensi, Bonato, Saam and Hoefler, NSDI 2024): in step s an even position meets the one rho(s) on,
// rho(s) = (1 - (-2)^(s+1)) / 3 = 1, -1, 3, -5, 11 .., an odd one the one rho(s) back, so that partners swing
// from side to side and are nearer than a power of 2. reduce_scatter takes ceil(log2 n) steps with far
// partners last, when little is left; the allgather is that backwards: ceil(log2 n) alpha + (n-1)/n S beta
// where partners share no links. On grids of even sides steps take the dimensions in turn, and there are two
// lanes a dimension: each starts with another one, one of the two the other way round, so that all links
// work. Other ranks form a circle. Even numbers that are no power of 2 leave out what would come twice.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/textbook/rounds.h"

namespace xccl {

// The rounds of an allgather over positions in a circle, far partners first. One surplus position of an odd
// number exchanges its own data and everyone's with each of the others directly.
std::vector<std::vector<RoundSend>> CircleRounds(int32_t n);

}  // namespace xccl
