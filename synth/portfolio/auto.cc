#include "synth/portfolio/auto.h"

#include "synth/common/serves.h"
#include "synth/portfolio/portfolio.h"
#include "synth/portfolio/some_ranks.h"

namespace xccl {

Engine AutoEngine(EngineTable table) {
  return {.name = kDefaultEngine,
          .summary =
              "tries the engines in order of their estimates, simulates, keeps the fastest; exact where "
              "it meets the bound",
          .exact_on = ExactOn::kMetBound,
          .asks_others = true,
          .serves = [](const SynthesisRequest& request) { return CheckMembers(kDefaultEngine, request); },
          .make =
              [table](const SynthesisRequest& request) {
                const auto make = [table](const SynthesisRequest& asked) {
                  return TryEngines(asked, table());
                };
                const bool all = request.collective->num_members() == request.topology->num_ranks();
                return all ? make(request) : PlanSomeRanks(request, make);
              }};
}

}  // namespace xccl
