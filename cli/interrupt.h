// Ctrl-C as a question: a long search that asks ends with the best so far. A second Ctrl-C ends the program.
#pragma once

#include <functional>

namespace xccl {

// Catches Ctrl-C until the program ends; the function says whether there was one.
std::function<bool()> CatchInterrupt();

}  // namespace xccl
