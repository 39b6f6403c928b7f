// Changes a text the way hands, scripts and disks do: numbers and quoted values replaced, elements dropped,
// repeated and moved, ends cut off. Knows enough of XML and JSON that many results are still well formed.
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"

namespace xccl::testing {

// One change. The result may be equal to the text. Linear in the text.
std::string MutateText(std::string_view text, Random& random);

}  // namespace xccl::testing
