// Sends that other synthesizers print, read as plans for a full mesh: a text that begins with '<' is
// ForestColl's, any other text is TACOS'.
#include <string>

#include "interchange/traces/printed_sends.h"
#include "pipeline/import_sends.h"
#include "tests/fuzz/fuzz.h"
#include "topologies/load/load.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  const StatusOr<PrintedSends> printed =
      text.starts_with('<') ? ReadForestCollXml(text, "fuzz") : ReadTacosCsv(text, "fuzz");
  if (!printed.ok()) return CheckRefusal(printed.status());
  constexpr int32_t kMostRanks = 16;
  if (printed->ranks < 2 || printed->ranks > kMostRanks) return;
  const Topology mesh = LoadTopology("full-mesh:" + std::to_string(printed->ranks)).value();
  for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kAllreduce}) {
    const StatusOr<PlanResult> result = ImportSends(*printed, "fuzz", mesh, kind, {.lower = true});
    if (!result.ok()) CheckRefusal(result.status());
  }
}

}  // namespace xccl::testing
