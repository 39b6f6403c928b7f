// Plan books for tests of the C API.
#pragma once

#include <initializer_list>
#include <string>

#include "ir/collective.h"

namespace xccl {

// A book with direct plans of the given kinds, in the test's folder; roots are rank ranks / 2.
std::string MakeBook(const std::string& name, int32_t ranks, std::initializer_list<CollectiveKind> kinds);

}  // namespace xccl
