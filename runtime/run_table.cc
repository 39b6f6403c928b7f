#include "runtime/run_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace xccl {
namespace {

constexpr int kPoison = 0xA5;  // fills an output
constexpr std::byte kGuard{0x5A};
constexpr int64_t kGuardBytes = 256;

int64_t RoundUp(int64_t bytes) { return (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes; }

int64_t BytesOf(const CollectiveSizes& sizes, const std::vector<PartId>& parts, size_t until) {
  int64_t bytes = 0;
  for (size_t p = 0; p < until && p < parts.size(); ++p) bytes += sizes.PartBytes(parts[p]);
  return bytes;
}

// Counts bytes outside the buffers that have lost their guard value.
int64_t OverwrittenGuards(const RunLayout& layout, std::span<const std::byte> memory) {
  int64_t wrong = 0, at = 0;
  const auto count_until = [&](int64_t end) {
    for (; at < end; ++at) wrong += memory[static_cast<size_t>(at)] != kGuard ? 1 : 0;
  };
  count_until(std::min(layout.input_at, layout.output_at));
  const int64_t input_end = layout.input_at + layout.input_bytes;
  if (input_end <= layout.output_at) {
    at = input_end;
    count_until(layout.output_at);
  }
  at = std::max(input_end, layout.output_at + layout.output_bytes);
  count_until(layout.bytes);
  return wrong;
}

// Do the program and the collective have an in-place form?
bool HasInPlace(const Program& program, const Collective& collective) {
  return program.in_place && std::ranges::any_of(collective.ranks(), [&](Rank rank) {
           return collective.InPlaceOf(rank).has_value();
         });
}

// nccl-tests' count column.
int64_t CountOf(const Collective& collective, const CollectiveSizes& sizes) {
  int64_t largest = 0;
  for (int32_t p = 0; p < collective.num_parts(); ++p)
    largest = std::max(largest, sizes.PartElements(PartId(p)));
  return largest;
}

}  // namespace

RunTable::RunTable(const Program& program, const Collective& collective, RunOptions options,
                   std::vector<Rank> ranks, std::vector<Case> cases, TestData data, HostMemory results)
    : program_(&program),
      collective_(&collective),
      options_(std::move(options)),
      ranks_(std::move(ranks)),
      cases_(std::move(cases)),
      data_(std::move(data)),
      results_(std::move(results)) {}

StatusOr<RunTable> RunTable::Create(const Program& program, const Collective& collective,
                                    const RunOptions& given, std::vector<Rank> ranks) {
  RunOptions options = given;
  if (!collective.Reduces()) options.op = ReduceOp::kSum;
  std::vector<Case> cases;
  int64_t largest = 0;
  for (int64_t size : options.sizes_bytes) {
    const CollectiveSizes sizes(collective, size, SizeOf(options.type));
    largest = std::max(largest, CountOf(collective, sizes));
    cases.push_back({sizes, false});
    if (options.in_place && HasInPlace(program, collective)) cases.push_back({sizes, true});
  }
  XCCL_ASSIGN_OR_RETURN(TestData data, TestData::Create(collective, options.type, options.op, largest));
  XCCL_ASSIGN_OR_RETURN(HostMemory results,
                        HostMemory::CreateShared(static_cast<int64_t>(cases.size() * sizeof(RankResult)) *
                                                 program.ranks.size()));
  return RunTable(program, collective, std::move(options), std::move(ranks), std::move(cases),
                  std::move(data), std::move(results));
}

RunLayout RunTable::LayoutOf(const Case& now, Rank rank) const {
  RunLayout layout;
  const std::vector<PartId> input = collective_->InputParts(rank), output = collective_->OutputParts(rank);
  layout.input_bytes = BytesOf(now.sizes, input, input.size());
  layout.output_bytes = BytesOf(now.sizes, output, output.size());
  layout.input_at = kGuardBytes;
  layout.output_at = 2 * kGuardBytes + RoundUp(layout.input_bytes);
  if (const auto overlap = collective_->InPlaceOf(rank); now.in_place && overlap) {
    layout.overlaps = true;
    layout.input_at =
        kGuardBytes + BytesOf(now.sizes, output, static_cast<size_t>(overlap->input_at_output_part));
    layout.output_at =
        kGuardBytes + BytesOf(now.sizes, input, static_cast<size_t>(overlap->output_at_input_part));
  }
  layout.bytes =
      RoundUp(std::max(layout.input_at + layout.input_bytes, layout.output_at + layout.output_bytes)) +
      kGuardBytes;
  return layout;
}

void RunTable::Fill(const Case& now, Rank rank, std::span<std::byte> memory) const {
  const RunLayout layout = LayoutOf(now, rank);
  std::memset(memory.data(), std::to_integer<int>(kGuard), memory.size());
  std::memset(memory.data() + layout.output_at, kPoison, static_cast<size_t>(layout.output_bytes));
  data_.Fill(now.sizes, rank, memory.data() + layout.input_at);
}

void RunTable::Check(const Case& now, Rank rank, std::span<const std::byte> memory,
                     RankResult& result) const {
  const RunLayout layout = LayoutOf(now, rank);
  result.wrong = data_.CountWrong(now.sizes, rank, memory.data() + layout.output_at);
  result.out_of_bounds = OverwrittenGuards(layout, memory);
  if (!layout.overlaps)
    result.out_of_bounds += data_.CountChanged(now.sizes, rank, memory.data() + layout.input_at);
}

RunRow RunTable::RowOf(size_t index) const {
  const Case& now = cases_[index];
  RunRow row;
  row.size_bytes = now.sizes.size_bytes();
  row.count = CountOf(*collective_, now.sizes);
  row.in_place = now.in_place;
  row.rank_us.assign(static_cast<size_t>(program_->ranks.size()), 0);
  row.sample_us.assign(static_cast<size_t>(num_samples()), 0);
  for (Rank rank : ranks_) {
    const RankResult& result = ResultOf(index, rank);
    for (size_t s = 0; s < row.sample_us.size(); ++s)
      row.sample_us[s] = std::max(row.sample_us[s], result.sample_s[s] * 1e6);
    row.rank_us[rank.index()] = result.seconds * 1e6;
    row.time_us += result.seconds * 1e6 / static_cast<double>(ranks_.size());
    row.slowest_us = std::max(row.slowest_us, result.seconds * 1e6);
    row.wrong += result.wrong;
    row.out_of_bounds += result.out_of_bounds;
  }
  if (row.time_us > 0) row.algbw_gb_per_s = static_cast<double>(row.size_bytes) / row.time_us / 1e3;
  row.busbw_gb_per_s = row.algbw_gb_per_s * BusFactor(collective_->kind(), collective_->num_members());
  if (options_.predicted_ps)
    if (const auto predicted = options_.predicted_ps(row.size_bytes))
      row.predicted_us = static_cast<double>(*predicted) / 1e6;
  return row;
}

double RunTable::SlowestWarm(size_t index) const {
  double slowest = 0;
  for (const Rank rank : ranks_) slowest = std::max(slowest, ResultOf(index, rank).warm_s);
  return slowest;
}

std::vector<RunRow> RunTable::Rows() const {
  std::vector<RunRow> rows;
  for (size_t i = 0; i < cases_.size(); ++i) rows.push_back(RowOf(i));
  return rows;
}

Status RunTable::Share(Rank own, const AllGather& all_gather) const {
  std::string mine;
  for (size_t i = 0; i < cases_.size(); ++i)
    mine.append(reinterpret_cast<const char*>(&ResultOf(i, own)), sizeof(RankResult));
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all, all_gather(mine));
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].size() != mine.size())
      return InvalidInput(fmt::format("rank {}: results of {} bytes; expected {}: do all run the same sizes?",
                                      r, all[r].size(), mine.size()));
    for (size_t i = 0; i < cases_.size(); ++i)
      std::memcpy(&ResultOf(i, Rank(static_cast<int32_t>(r))), all[r].data() + i * sizeof(RankResult),
                  sizeof(RankResult));
  }
  return OkStatus();
}

std::vector<Rank> ActiveRanks(const Program& program, const Collective& collective) {
  std::vector<Rank> active;
  for (int32_t r = 0; r < program.ranks.size(); ++r)
    if (collective.MemberIndex(Rank(r)) || !program.ranks[Rank(r)].threadblocks.empty())
      active.push_back(Rank(r));
  return active;
}

}  // namespace xccl
