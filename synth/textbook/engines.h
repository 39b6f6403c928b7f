// The textbook engines: the header of each .cc says what its algorithms do and who published them.
#pragma once

#include <span>

#include "synth/textbook/textbook.h"

namespace xccl {

PlaceFunction PlaceRing, PlaceHierarchicalRing, Place2dRing, Place2dTorus, PlaceMesh2d;
PlaceFunction PlaceTree, PlaceDoubleBinaryTree, PlaceBinomial, PlaceKnomial;
PlaceFunction PlaceHalvingDoubling, PlaceRecursiveDoubling, PlaceRecursiveMultiplying;
PlaceFunction PlaceHierarchicalExchange, PlaceSwing, PlaceBine, PlaceBruck, PlaceNhr, PlacePat;
PlaceFunction PlaceDirect, PlacePairwise, PlaceSpread, PlaceCirculant;

// All of them, in the order that `auto` and `compare` show.
std::span<const TextbookEngine> TextbookEngines();

}  // namespace xccl
