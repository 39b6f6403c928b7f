// The textbook engines, one file each: the header of a file says what its algorithm does and who published
// it.
#pragma once

#include <span>

#include "synth/textbook/textbook.h"

namespace xccl {

const TextbookEngine& RingEngine();
const TextbookEngine& TreeEngine();
const TextbookEngine& BinomialEngine();
const TextbookEngine& DoubleBinaryTreeEngine();
const TextbookEngine& HalvingDoublingEngine();
const TextbookEngine& RecursiveDoublingEngine();
const TextbookEngine& BruckEngine();
const TextbookEngine& PairwiseEngine();
const TextbookEngine& Ring2dEngine();
const TextbookEngine& Torus2dEngine();
const TextbookEngine& HierarchicalRingEngine();
const TextbookEngine& HierarchicalDoublingEngine();
const TextbookEngine& KnomialEngine();
const TextbookEngine& RecursiveMultiplyingEngine();
const TextbookEngine& Mesh2dEngine();
const TextbookEngine& NhrEngine();
const TextbookEngine& SwingEngine();
const TextbookEngine& BineEngine();
const TextbookEngine& PatEngine();
const TextbookEngine& DirectEngine();

// All of them, in the order that `auto` and `compare` show.
std::span<const TextbookEngine* const> TextbookEngines();

}  // namespace xccl
