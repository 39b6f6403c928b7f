// A row decides a call if its four conditions hold and its choice is there. Rows with the same conditions on
// pipe_ops and registered form a group; a call meets at most four groups: with and without either condition.
// In a group, the limits of the rows cut the sizes into intervals. In an interval, a row counts only if it is
// the first of its choice, so an interval has at most one candidate for each choice. The first row of a group
// is then the first candidate whose choice is there, and the least of the groups' rows decides.
#include "runtime/nccl/tuner/lookup.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

namespace xccl::nccl_tuner {

Lookup::Lookup(std::vector<Row> rows) : rows_(std::move(rows)) {
  std::map<Conditions, std::vector<uint16_t>> groups;
  for (size_t i = 0; i < rows_.size(); ++i)
    groups[{rows_[i].pipe_ops, rows_[i].registered}].push_back(static_cast<uint16_t>(i));
  groups_.reserve(groups.size());
  for (const auto& [conditions, members] : groups) groups_.push_back(GroupOf(conditions, members));
}

Lookup::Group Lookup::GroupOf(const Conditions& conditions, std::span<const uint16_t> rows) const {
  struct Event {
    int64_t bytes;
    bool begins;
    uint16_t row;
  };
  std::vector<Event> events;
  for (const uint16_t row : rows) {
    events.push_back({rows_[row].min_bytes, true, row});
    // Rows without a limit never end.
    if (rows_[row].max_bytes < std::numeric_limits<int64_t>::max())
      events.push_back({rows_[row].max_bytes + 1, false, row});
  }
  std::ranges::sort(events, {}, &Event::bytes);

  Group group = {.conditions = conditions, .begins = {}, .ends = {}, .candidates = {}};
  std::array<std::set<uint16_t>, Choices().size()> open;  // the rows of each choice whose interval this is
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    std::set<uint16_t>& same = open[IndexOf(rows_[event.row].algorithm, rows_[event.row].protocol)];
    if (event.begins)
      same.insert(event.row);
    else
      same.erase(event.row);
    if (i + 1 < events.size() && events[i + 1].bytes == event.bytes) continue;
    group.begins.push_back(event.bytes);
    const auto first = static_cast<std::ptrdiff_t>(group.candidates.size());
    for (size_t choice = 0; choice < open.size(); ++choice)
      if (!open[choice].empty())
        group.candidates.push_back({*open[choice].begin(), static_cast<uint16_t>(choice)});
    std::sort(group.candidates.begin() + first, group.candidates.end(),
              [](const Candidate& a, const Candidate& b) { return a.row < b.row; });
    group.ends.push_back(static_cast<uint32_t>(group.candidates.size()));
  }
  return group;
}

std::span<const Lookup::Candidate> Lookup::CandidatesFor(const Conditions& conditions, int64_t bytes) const {
  const auto group = std::ranges::lower_bound(groups_, conditions, {}, &Group::conditions);
  if (group == groups_.end() || group->conditions != conditions) return {};
  const auto after = std::ranges::upper_bound(group->begins, bytes) - group->begins.begin();
  if (after == 0) return {};
  const uint32_t begin = after == 1 ? 0 : group->ends[after - 2];
  return std::span(group->candidates).subspan(begin, group->ends[after - 1] - begin);
}

const Row* Lookup::First(const Call& call, const Choices& choices) const {
  size_t first = rows_.size();
  const auto look = [&](const Conditions& conditions) {
    for (const Candidate& candidate : CandidatesFor(conditions, call.bytes)) {
      if (!choices[candidate.choice]) continue;
      first = std::min<size_t>(first, candidate.row);
      return;
    }
  };
  look({});
  if (call.pipe_ops) look({call.pipe_ops, {}});
  if (call.registered) look({{}, call.registered});
  if (call.pipe_ops && call.registered) look({call.pipe_ops, call.registered});
  return first < rows_.size() ? &rows_[first] : nullptr;
}

}  // namespace xccl::nccl_tuner
