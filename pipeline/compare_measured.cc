// Converts runs of nccl-tests to measured times: checks that the run and the comparison have the same
// collective, ranks and root, then takes the run's times at the sizes of the comparison.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "ir/sizes.h"
#include "pipeline/compare.h"

namespace xccl {
namespace {

Status CheckSame(const NcclTestsRun& run, const std::string& file, const Collective& collective) {
  if (!run.program.empty() && run.collective != collective.kind())
    return InvalidInput(fmt::format("{}: {}; expected {}, as is compared", run.program_place,
                                    Shortened(run.program), collective.name()));
  if (run.ranks == 0)
    return InvalidInput(fmt::format("{}: no line lists ranks; expected '# Rank 0 ... on HOST'", file));
  if (run.ranks != collective.num_members())
    return InvalidInput(fmt::format("{}: {}; expected {}, as is compared", run.ranks_place,
                                    Counted(run.ranks, "rank"), collective.num_members()));
  std::optional<int64_t> root;
  if (collective.spec().root) root = collective.MemberIndex(*collective.spec().root);
  const auto text = [](const std::optional<int64_t>& rank) {
    return rank ? fmt::format("root {}", *rank) : std::string("no root");
  };
  // The root is not checked where the file cannot tell it: in some formats, and in old tables, which have no
  // root column and name no program.
  if (run.names_root && run.root != root && (run.root || run.lists_variables || !run.program.empty()))
    return InvalidInput(fmt::format("{}: {}; expected {}, as is compared", file, text(run.root), text(root)));
  return OkStatus();
}

std::string SizesText(const std::vector<int64_t>& sizes) {
  std::vector<std::string> texts;
  for (const int64_t size : sizes) texts.push_back(FormatSize(size));
  return Join(texts, ",");
}

StatusOr<MeasuredTimes> OneBeside(const NcclTestsRun& run, const std::string& file,
                                  const Collective& collective, const std::vector<int64_t>& sizes) {
  XCCL_RETURN_IF_ERROR(CheckSame(run, file, collective));
  MeasuredTimes measured{
      .name = {}, .made_by = run.names_root ? "nccl-tests" : "rccl-tests", .note = {}, .time_ps = {}};
  std::vector<int64_t> compared, others;
  for (const int64_t size : sizes) compared.push_back(CollectiveSizes(collective, size).size_bytes());
  int64_t wrong = 0;
  for (const auto& [bytes, us, wrong_elements] : run.times) {
    if (std::ranges::find(compared, bytes) == compared.end()) {
      others.push_back(bytes);
      continue;
    }
    if (wrong_elements > 0) {
      ++wrong;
      continue;
    }
    const auto ps = static_cast<int64_t>(
        std::min(std::round(us * static_cast<double>(kPsPerUs)), static_cast<double>(kForeverPs)));
    const auto [at, is_new] = measured.time_ps.emplace(bytes, ps);
    if (!is_new) at->second = std::min(at->second, ps);
  }
  if (measured.time_ps.empty() && wrong == 0)
    return InvalidInput(
        fmt::format("{}: none of its sizes is compared; hint: --sizes={}", file, SizesText(others)));
  measured.note =
      fmt::format("{} of {}{}, out of place; not simulated",
                  run.program.empty() ? "a program that the file does not name" : Shortened(run.program),
                  Counted(run.ranks, "rank"), run.hosts > 0 ? " on " + Counted(run.hosts, "host") : "");
  if (!others.empty())
    measured.note += fmt::format("; {} not compared", Counted(std::ssize(others), "other size"));
  if (wrong > 0) measured.note += fmt::format("; {} with wrong elements left out", Counted(wrong, "row"));
  if (run.cut_rows > 0)
    measured.note += fmt::format("; {} that other lines cut left out", Counted(run.cut_rows, "row"));
  return measured;
}

}  // namespace

StatusOr<std::vector<MeasuredTimes>> MeasuredBeside(const std::vector<NcclTestsRun>& runs,
                                                    const std::string& name, const std::string& file,
                                                    const Collective& collective,
                                                    const std::vector<int64_t>& sizes) {
  std::vector<MeasuredTimes> all;
  Status first;
  int64_t left_out = 0;
  for (const NcclTestsRun& run : runs) {
    StatusOr<MeasuredTimes> measured = OneBeside(run, file, collective, sizes);
    if (!measured.ok()) {
      if (left_out++ == 0) first = measured.status();
      continue;
    }
    measured->name = fmt::format("measured: {}{}", name, run.place.substr(file.size()));
    all.push_back(*std::move(measured));
  }
  if (all.empty())
    return runs.size() == 1 ? first
                            : InvalidInput(fmt::format("{}; nor does another of its {} runs fit",
                                                       first.message(), runs.size()));
  if (all.size() == 1) all.front().name = "measured: " + name;
  for (MeasuredTimes& measured : all) measured.note = measured.name + ": " + measured.note;
  if (left_out > 0)
    all.back().note +=
        fmt::format("; {} of the file left out: {}", Counted(left_out, "other run"), first.message());
  return all;
}

}  // namespace xccl
