// Ctrl-C: a search ends with the best so far; a measurement ends with a text.
#pragma once

#include "base/deadline.h"

namespace xccl {

// The deadline, which Ctrl-C brings forward from here on, so that a search ends with the best so far. A
// second Ctrl-C ends the program. Where the program was started with Ctrl-C ignored, it stays so.
Deadline CatchInterrupt(const Deadline& deadline);

// From here on, or from the last call, Ctrl-C prints the text, removes the directory if it is empty, and ends
// this process as by default; processes that are forked from it print nothing. Both texts must stay as long
// as the process. Where the program was started with Ctrl-C ignored, it stays so.
void EndOnInterrupt(const char* text, const char* directory = nullptr);

}  // namespace xccl
