// The textbook engines. The comment at the top of each .cc file says what its algorithms do and who published
// them.
#pragma once

#include <span>

#include "synth/textbook/textbook.h"

namespace xccl {

PlaceFunction PlaceRing, PlaceHierarchicalRing, Place2dRing, Place2dTorus, PlaceMesh2d;
PlaceFunction PlaceTree, PlaceDoubleBinaryTree, PlaceBinomial, PlaceKnomial;
PlaceFunction PlaceHalvingDoubling, PlaceRecursiveDoubling, PlaceRecursiveMultiplying;
PlaceFunction PlaceHierarchicalExchange, PlaceSwing, PlaceBine, PlaceBruck, PlaceNhr, PlacePat;
PlaceFunction PlaceDirect, PlacePairwise, PlaceSpread, PlaceCirculant, PlaceTorusTrees;

// Returns all textbook engines, in the order of the table of synth/engines.h.
std::span<const TextbookEngine> TextbookEngines();

}  // namespace xccl
