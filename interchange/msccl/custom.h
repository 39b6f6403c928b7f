// The collective that a file of coll="custom" performs. Private to the reader.
#pragma once

#include <string_view>

#include "base/status.h"
#include "interchange/msccl/file.h"
#include "interchange/msccl/outline.h"
#include "ir/collective.h"

namespace xccl::msccl {

// Before: every rank holds its input. After: every rank holds what the steps leave in its output. Where the
// file adds, chunk i of all inputs is one part; else every chunk of every input is a part of its own. Errors:
// kInvalidInput where an output does not hold its parts in this order and without gaps, which is how buffers
// of a collective are laid out.
StatusOr<Collective> WhatItDoes(const File& file, std::string_view name, const Outline& outline);

}  // namespace xccl::msccl
