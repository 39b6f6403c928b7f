// What a plan of MSCCL++ does, as the threadblocks and steps of MSCCL XML's model. Private to the reader.
#pragma once

#include "ir/interchange/msccl_file.h"
#include "ir/interchange/mscclpp_file.h"
#include "ir/interchange/mscclpp_run.h"

namespace xccl::mscclpp {

// `together`: parts of a threadblock are one again, and what it does becomes fewer steps. `merged`: pieces of
// a message that lie side by side are one message. Either may make threadblocks wait for each other that did
// not, which the proof finds. The chunks of a loop are left to the caller. Requires: `run` is of `file`.
msccl::File Translate(const File& file, const Run& run, bool together, bool merged);

}  // namespace xccl::mscclpp
