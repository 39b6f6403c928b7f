// Converts the calls of a job to measured times of the collective that is compared.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/size_range.h"
#include "base/strings.h"
#include "base/units.h"
#include "ir/sizes.h"
#include "pipeline/compare.h"

namespace xccl {
namespace {

// The calls of one size, after the collective has rounded it.
struct OfSize {
  int64_t calls = 0, timed = 0;
  double us = 0;  // total time of the timed calls
};

std::map<int64_t, OfSize> CallsOf(const JobCalls& job, const Collective& collective) {
  std::optional<Rank> root;
  if (collective.spec().root) root = Rank(*collective.MemberIndex(*collective.spec().root));
  std::map<int64_t, OfSize> sizes;
  for (const JobCall& call : job.calls) {
    if (call.collective != collective.kind() || call.ranks != collective.num_members() || call.root != root)
      continue;
    OfSize& of = sizes[CollectiveSizes(collective, call.size_bytes).size_bytes()];
    of.calls += call.calls;
    if (!call.us) continue;
    of.timed += call.calls;
    of.us += *call.us * static_cast<double>(call.calls);
  }
  sizes.erase(0);
  return sizes;
}

std::string UntimedText(const std::vector<std::pair<int64_t, int64_t>>& untimed) {
  std::vector<std::string> texts;
  for (const auto& [size_bytes, calls] : untimed)
    texts.push_back(fmt::format("{} ({})", SizeText(size_bytes), Counted(calls, "call")));
  return "; without times: " + SomeOf(texts);
}

}  // namespace

std::vector<int64_t> SizesOfJob(const JobCalls& job, const Collective& collective, size_t most) {
  std::vector<std::pair<double, int64_t>> sizes;
  const std::map<int64_t, OfSize> calls = CallsOf(job, collective);
  const bool timed = std::ranges::all_of(calls, [](const auto& of) { return of.second.timed > 0; });
  for (const auto& [size, of] : calls)
    sizes.emplace_back(timed ? -of.us : -static_cast<double>(of.calls) * static_cast<double>(size), size);
  std::ranges::sort(sizes);
  std::vector<int64_t> chosen;
  for (const auto& [weight, size] : sizes)
    if (chosen.size() < most) chosen.push_back(size);
  std::ranges::sort(chosen);
  return chosen;
}

StatusOr<MeasuredTimes> MeasuredByJob(const JobCalls& job, const std::string& name, const std::string& file,
                                      const Collective& collective, const std::vector<int64_t>& sizes) {
  const std::map<int64_t, OfSize> calls = CallsOf(job, collective);
  const std::string what =
      fmt::format("{} of {}", collective.name(), Counted(collective.num_members(), "rank"));
  if (calls.empty())
    return InvalidInput(fmt::format("{}: no call of {}; expected one, as is compared", file, what));
  MeasuredTimes measured{.name = "measured: " + name, .made_by = "a job", .note = {}, .time_ps = {}};
  std::vector<std::pair<int64_t, int64_t>> untimed;
  std::vector<int64_t> compared;
  for (const int64_t size : sizes) compared.push_back(CollectiveSizes(collective, size).size_bytes());
  int64_t others = 0;
  for (const auto& [size, of] : calls) {
    if (std::ranges::find(compared, size) == compared.end()) {
      ++others;
    } else if (of.timed == 0) {
      untimed.emplace_back(size, of.calls);
    } else {
      const double ps = of.us / static_cast<double>(of.timed) * static_cast<double>(kPsPerUs);
      measured.time_ps[size] =
          static_cast<int64_t>(std::min(std::round(ps), static_cast<double>(kForeverPs)));
      measured.calls[size] = of.calls;
    }
  }
  if (measured.time_ps.empty() && untimed.empty())
    return InvalidInput(fmt::format("{}: none of its sizes is compared; hint: leave out --sizes", file));
  measured.note =
      fmt::format("{}: calls of {} in a job, mean times with waiting; not simulated", measured.name, what);
  if (!untimed.empty()) measured.note += UntimedText(untimed);
  if (others > 0) measured.note += fmt::format("; {} not compared", Counted(others, "other size"));
  return measured;
}

}  // namespace xccl
