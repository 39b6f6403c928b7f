// Plan books for a machine: of the plans that ran fastest on threads of this process, and of plans faster
// than NCCL by its own model.
#include "pipeline/tune.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files.h"
#include "pipeline/arguments.h"
#include "pipeline/measure/machine.h"
#include "pipeline/measure_runs.h"
#include "pipeline/nccl/book.h"
#include "pipeline/nccl/steer.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/options.h"
#include "runtime/plan_book.h"

namespace xccl::python {
namespace {

using SharedCollectives = std::vector<std::shared_ptr<Collective>>;

TuneRequest RequestOf(const Topology& topology, const SharedCollectives& collectives,
                      std::vector<int64_t> sizes, const Asked& asked) {
  TuneRequest request;
  request.pipeline = OptionsOf(asked);
  request.sizes_bytes = std::move(sizes);
  std::ranges::sort(request.sizes_bytes);
  if (request.sizes_bytes.empty()) Check(UsageError("sizes: none; expected at least one"));
  for (const auto& collective : collectives) {
    CheckMembers(topology, *collective);
    for (const int64_t size : request.sizes_bytes) {
      Check(CheckSize(size), "sizes");
      Check(CheckNotEmpty(size, *collective), "sizes");
    }
    request.collectives.push_back(*collective);
  }
  return request;
}

// Returns the request with the caller's deadline, and with progress that is reported to the caller.
TuneRequest Within(TuneRequest request, const Caller& caller) {
  request.pipeline = Within(request.pipeline, caller);
  request.pipeline.request.progress = {};  // collectives are reported, not the engines of each plan
  request.on_collective = [caller](size_t done, size_t all) {
    caller.Say(fmt::format("{} of {} collectives", done, all));
  };
  return request;
}

// Makes the directory and its files. If the work fails, a directory that was made for it is removed, if it is
// empty.
template <typename Work>
auto IntoBook(const std::string& directory, const Work& work) -> decltype(work()) {
  const bool is_new = !PathExists(directory);
  auto made = [&]() -> decltype(work()) {
    XCCL_RETURN_IF_ERROR(MakePlanBookDirectory(directory));  // before long measurements
    return work();
  }();
  std::error_code ignored;
  if (!made.ok() && is_new) std::filesystem::remove(directory, ignored);  // where it is empty
  return made;
}

// A call that was given up writes nothing.
Status StillWanted(const Caller& caller) {
  return caller.Stopped() ? LimitReached("stopped before the book was written") : OkStatus();
}

// A machine's constants: given, or measured on threads.
StatusOr<MeasuredMachine> MachineFor(const Topology& topology, const PlanOptions& options,
                                     const Measure& measure) {
  if (options.machine) return MeasuredMachine{*options.machine, ""};
  if (topology.num_ranks() < 2)
    return InvalidInput(topology.name() + ": 1 rank; expected at least 2, to measure a hop");
  return MeasureMachine(topology, "measured on CPU threads", false, measure);
}

int32_t RootOf(const TunedRow& row) { return row.root ? row.root->value : -1; }

struct TunedBook {
  Tuned tuned;
  MeasuredMachine machine;
};

py::tuple TuneOnThreads(const std::shared_ptr<Topology>& topology, const SharedCollectives& collectives,
                        const std::vector<int64_t>& sizes, const std::string& directory, int32_t iterations,
                        const Asked& asked, Watching& watching) {
  const TuneRequest request = RequestOf(*topology, collectives, sizes, asked);
  watching.keeps_best = false;
  watching.deadline = request.pipeline.deadline;
  if (iterations < 1) Check(UsageError(fmt::format("iters: {}; expected at least 1", iterations)));
  const RunSettings settings{.options = {.iterations = iterations, .warmup = {}, .in_place = false},
                             .gpus = {}};
  const TunedBook made = Watched(watching, [=](const Caller& caller) {
    return IntoBook(directory, [&]() -> StatusOr<TunedBook> {
      TuneRequest within = Within(request, caller);
      const Measure run = MeasureRepeatedly(settings, *topology);
      const Measure measure = [&](const LoweredProgram& lowered, int64_t size_bytes) -> StatusOr<Measured> {
        XCCL_RETURN_IF_ERROR(StillWanted(caller));
        return run(lowered, size_bytes);
      };
      XCCL_ASSIGN_OR_RETURN(MeasuredMachine machine, MachineFor(*topology, within.pipeline, measure));
      const bool is_trusted = machine.doubt.empty();
      if (is_trusted) within.pipeline.machine = machine.model;
      within.pipeline.machine_of_topology = !is_trusted;
      XCCL_ASSIGN_OR_RETURN(Tuned tuned, Tune({topology.get(), 1}, within, measure));
      XCCL_RETURN_IF_ERROR(StillWanted(caller));
      XCCL_RETURN_IF_ERROR(WriteBook(tuned.entries, tuned.plans, within.pipeline.machine, directory));
      return TunedBook{std::move(tuned), std::move(machine)};
    });
  });
  std::vector<std::string> names, engines, files;
  std::vector<int32_t> roots, ctas;
  std::vector<int64_t> row_sizes;
  std::vector<double> times, predicted;
  const bool is_trusted = made.machine.doubt.empty();
  for (const TunedRow& row : made.tuned.rows) {
    names.push_back(row.collective);
    roots.push_back(RootOf(row));
    row_sizes.push_back(row.size_bytes);
    engines.push_back(row.engine);
    times.push_back(row.measured_us);
    predicted.push_back(is_trusted ? row.predicted_us : std::nan(""));
    ctas.push_back(row.threadblocks);
    files.push_back(row.file);
  }
  py::dict columns;
  columns["collective"] = names;
  columns["root"] = Owned(std::move(roots));
  columns["size_bytes"] = Owned(std::move(row_sizes));
  columns["engine"] = engines;
  columns["time_us"] = Owned(std::move(times));
  columns["predicted_us"] = Owned(std::move(predicted));
  columns["ctas"] = Owned(std::move(ctas));
  columns["file"] = files;
  return py::make_tuple(columns, is_trusted ? made.machine.model.source : made.machine.doubt);
}

py::dict Columns(const std::vector<nccl::BookRow>& rows) {
  std::vector<std::string> names, engines, algorithms, protocols, files;
  std::vector<int32_t> roots, ctas, channels;
  std::vector<int64_t> sizes;
  std::vector<double> predicted, nccl_us, gains;
  py::list all_kept;
  for (const auto& [ours, nccl, kept] : rows) {
    names.push_back(ours.collective);
    roots.push_back(RootOf(ours));
    sizes.push_back(ours.size_bytes);
    engines.push_back(ours.engine);
    predicted.push_back(ours.predicted_us);
    ctas.push_back(ours.threadblocks);
    algorithms.emplace_back(nccl_tuner::ToString(nccl.algorithm));
    protocols.emplace_back(nccl_tuner::ToString(nccl.protocol));
    channels.push_back(nccl.channels);
    nccl_us.push_back(nccl.us);
    gains.push_back(nccl.us / ours.predicted_us);
    all_kept.append(kept);
    files.push_back(kept ? ours.file : "");
  }
  py::dict columns;
  columns["collective"] = names;
  columns["root"] = Owned(std::move(roots));
  columns["size_bytes"] = Owned(std::move(sizes));
  columns["engine"] = engines;
  columns["predicted_us"] = Owned(std::move(predicted));
  columns["ctas"] = Owned(std::move(ctas));
  columns["nccl_algorithm"] = algorithms;
  columns["nccl_protocol"] = protocols;
  columns["nccl_channels"] = Owned(std::move(channels));
  columns["nccl_us"] = Owned(std::move(nccl_us));
  columns["gain"] = Owned(std::move(gains));
  columns["kept"] = all_kept;
  columns["file"] = files;
  return columns;
}

// `tests`: files of nccl-tests, whose times steer NCCL's tuner; none: simulated ones do.
py::tuple BookBesideNccl(const std::shared_ptr<Topology>& topology, const SharedCollectives& collectives,
                         const std::vector<int64_t>& sizes, const std::string& directory, double least_gain,
                         const std::vector<std::string>& tests, const Asked& asked, Watching& watching) {
  const TuneRequest request = RequestOf(*topology, collectives, sizes, asked);
  watching.keeps_best = false;
  watching.deadline = request.pipeline.deadline;
  if (!(least_gain >= 1)) Check(UsageError(fmt::format("least_gain: {}; expected 1 or more", least_gain)));
  struct Made {
    nccl::Book book;
    std::string machine;
  };
  const Made made = Watched(watching, [=](const Caller& caller) {
    return IntoBook(directory, [&]() -> StatusOr<Made> {
      TuneRequest within = Within(request, caller);
      XCCL_ASSIGN_OR_RETURN(within.pipeline, nccl::OptionsOfBook(*topology, within.pipeline));
      XCCL_ASSIGN_OR_RETURN(nccl::Book book, nccl::MakeBook(*topology, within, least_gain));
      if (!tests.empty()) {
        XCCL_ASSIGN_OR_RETURN(book.steering, nccl::SteerByFiles(tests, least_gain));
      }
      XCCL_RETURN_IF_ERROR(StillWanted(caller));
      XCCL_RETURN_IF_ERROR(nccl::WriteBookAndTable(book, *within.pipeline.machine, directory));
      return Made{std::move(book), within.pipeline.machine->source};
    });
  });
  return py::make_tuple(Columns(made.book.rows), made.machine, made.book.steering.size());
}

}  // namespace

void BindTune(py::module_& module) {
  module.def("tune", &TuneOnThreads);
  module.def("book", &BookBesideNccl);
}

}  // namespace xccl::python
