#include "synth/portfolio/preference.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace xccl {
namespace {

// A message costs a threadblock about 1 us beside its bytes (NCCL's model says 0.6 us to 8.5 us a step,
// by protocol and link), which is half of what 1 MiB takes on the fastest link of the library.
constexpr double kShortMessageBytes = 1 << 20;
// Shorter ones cost as much as their bytes. Longer ones cost less than the bound's last thousandths are worth
// to those who compare plans: with a fiftieth for all, the median of 30 machines' allgathers of 64 MiB is
// 1.003 times the bound in place of 1.001.
constexpr double kTinyMessageBytes = 64 << 10;
constexpr double kShareOfLoss = 0.5;  // of what the fastest plan loses beside the bound, that others may lose
constexpr double kAboutAsMuch = 1.1;  // times the fewest bytes between hosts

// How many times the least time may a plan take whose messages are fewer?
double AboutAsFast(const PlanCosts& fastest, double bound_ps) {
  const double bytes = fastest.link_use.message_bytes;
  if (fastest.link_use.messages == 0 || bytes >= kShortMessageBytes) return 1;
  if (bytes < kTinyMessageBytes || bound_ps <= 0) return kAboutAsFast;
  return std::clamp(1 + kShareOfLoss * (fastest.time_ps / bound_ps - 1), 1.0, kAboutAsFast);
}

}  // namespace

PlanCosts CostsOf(const Synthesis& made, const SynthesisRequest& request) {
  return {.time_ps = static_cast<double>(made.simulation->time_ps),
          .link_use = LinkUseOf(made.schedule, made.collective, *request.topology, request.size_bytes),
          .steps = made.schedule.num_steps()};
}

size_t Preferred(std::span<const PlanCosts> plans, double bound_ps) {
  const PlanCosts& fastest = *std::ranges::min_element(plans, {}, &PlanCosts::time_ps);
  const double slowest_ps = fastest.time_ps * AboutAsFast(fastest, bound_ps);
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
