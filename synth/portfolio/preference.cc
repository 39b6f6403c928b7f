#include "synth/portfolio/preference.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "ir/tolerance.h"
#include "synth/common/why_chosen.h"

namespace xccl {
namespace {

constexpr double kAboutAsMuch = 1.1;  // × the fewest bytes between hosts

}  // namespace

PlanCosts CostsOf(const Synthesis& made, const SynthesisRequest& request) {
  return {.time_ps = static_cast<double>(made.simulation->time_ps),
          .link_use = LinkUseOf(made.schedule, made.collective, *request.topology, request.size_bytes),
          .steps = made.schedule.num_steps()};
}

size_t Preferred(std::span<const PlanCosts> plans) {
  const PlanCosts& fastest = *std::ranges::min_element(plans, {}, &PlanCosts::time_ps);
  const double slowest_ps = fastest.time_ps * (HasShortMessages(fastest.link_use) ? kToleratedRatio : 1);
  std::vector<size_t> left;
  for (size_t i = 0; i < plans.size(); ++i)
    if (plans[i].time_ps <= slowest_ps) left.push_back(i);
  const auto between_hosts = [&](size_t i) { return plans[i].link_use.between_hosts_bytes; };
  const double least = between_hosts(*std::ranges::min_element(left, {}, between_hosts));
  std::erase_if(left, [&](size_t i) { return between_hosts(i) > least * kAboutAsMuch; });
  return *std::ranges::min_element(left, {}, [&](size_t i) {
    return std::tuple(plans[i].link_use.messages, plans[i].steps, plans[i].time_ps);
  });
}

}  // namespace xccl
