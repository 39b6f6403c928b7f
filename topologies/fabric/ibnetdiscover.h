// Reads what `ibnetdiscover` prints, in both forms: records of switches and adapters with a line for each
// live port (also with -f and -g, and as the network file of ibsim), and with -p one line for each port. The
// format: rdma-core, infiniband-diags/ibnetdiscover.c. Rates are data rates (ib_rates.h).
//
// Aggregation nodes of switches (SHARP) and routers are left out with a warning. A cable that only one end
// lists, and ends that contradict each other, are warnings with file and line. A cable that is slower than
// cables alike (degraded.h) is degraded, with a warning.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/fabric/fabric.h"

namespace xccl {

// Has the text a line that only ibnetdiscover prints? Reads at most its first 64 KiB.
bool IsIbnetdiscover(std::string_view text);

// Linear in the text. `file` opens messages. Errors: kInvalidInput "FILE:LINE:COLUMN: ...".
StatusOr<Fabric> ReadIbnetdiscover(std::string_view text, std::string_view file);

}  // namespace xccl
