// Reads what `iblinkinfo` prints, in both forms: a head for each switch and adapter with a line for each
// port, and with --line a line for each port that names both ends. The format: rdma-core,
// infiniband-diags/iblinkinfo.c. Rates are data rates (ib_rates.h).
//
// Without --line, the far end of a cable has no GUID: it is found by its LID, and the whole text must be of
// one subnet. Kinds of devices that have no head are told by their ports and names. "Could be 4X" makes a
// degraded cable. Aggregation nodes and routers are left out with a warning, as by ibnetdiscover.h.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/fabric/fabric.h"

namespace xccl {

// Has the text a line of a port as only iblinkinfo prints it? Reads at most its first 64 KiB.
bool IsIblinkinfo(std::string_view text);

// Linear in the text. `file` opens messages. Errors: kInvalidInput "FILE:LINE:COLUMN: ...".
StatusOr<Fabric> ReadIblinkinfo(std::string_view text, std::string_view file);

}  // namespace xccl
