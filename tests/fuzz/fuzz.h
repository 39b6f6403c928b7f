// A fuzz target is one function. With libFuzzer (`--config=fuzz`) it is called with endless texts; in the
// ordinary build a test calls it with its corpus and with some seeded changes of it. A target fails by a
// CHECK, an exception or a sanitizer's report. tests/fuzz/README.md lists all.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace xccl::testing {

// Defined by each target.
void FuzzOne(std::string_view text);

// Checks that a refusal blames the reader's input, and gives a reason.
void CheckRefusal(const Status& status);

// A file of this process with some contents; the next call replaces it. For readers that take a path.
const std::string& FileWith(std::string_view contents);

}  // namespace xccl::testing
