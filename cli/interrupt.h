// Ctrl-C as a question: long searches that ask end with the best so far. A second one ends the program.
#pragma once

#include <functional>

namespace xccl {

// From now on, until the program ends. Was there an interrupt?
std::function<bool()> CatchInterrupt();

}  // namespace xccl
