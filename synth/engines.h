// The textbook engines, one file each: the header of a file says what its algorithm does and who published
// it.
#pragma once

#include <span>

#include "synth/textbook.h"

namespace xccl {

const TextbookEngine& RingEngine();

// All of them, in the order that `auto` and `compare` show.
std::span<const TextbookEngine* const> TextbookEngines();

}  // namespace xccl
