// Translates the steps of an MSCCL++ plan into threadblocks and steps of MSCCL XML's model. Private to the
// reader.
#pragma once

#include "interchange/msccl/file.h"
#include "interchange/mscclpp/file.h"
#include "interchange/mscclpp/run.h"

namespace xccl::mscclpp {

// How much of a threadblock stays together. Every choice may make threadblocks wait for each other that did
// not, or messages be received in another order than they are sent in; the proof finds it.
struct Form {
  bool together = false;  // parts of a threadblock are one again, and several of its steps become one
  bool merged = false;    // pieces of a message that lie side by side are one message
  bool each = false;      // each end of each message is a threadblock of its own
};

// The chunks of a loop are left to the caller. Requires: `run` is of `file`.
msccl::File Translate(const File& file, const Run& run, const Form& form);

}  // namespace xccl::mscclpp
