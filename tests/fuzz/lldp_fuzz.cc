// Texts that lldpcli prints on one host and, after a line "--", on a second.
#include <span>

#include "tests/fuzz/fuzz.h"
#include "topologies/fabric/lldp.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  constexpr std::string_view kBetween = "\n--\n";
  const size_t between = text.find(kBetween);
  LldpFile files[] = {{std::string(text.substr(0, between)), "a.json"}, {"", "b.json"}};
  const bool two = between != std::string_view::npos;
  if (two) files[1].text = text.substr(between + kBetween.size());
  IsLldp(text);
  const StatusOr<Fabric> fabric = ReadLldp(std::span(files).first(two ? 2 : 1));
  if (!fabric.ok()) return CheckRefusal(fabric.status());
  for (const FabricCable& cable : fabric->cables)
    for (const FabricEnd& end : {cable.a, cable.b})
      XCCL_CHECK(static_cast<size_t>(end.index) <
                 (end.is_switch ? fabric->switches.size() : fabric->adapters.size()));
}

}  // namespace xccl::testing
