// Programs as text for compilers and other tools, plans as pictures, and programs run on CPU ranks of this
// process.
#include "codegen/emit.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "interchange/mscclpp/json.h"
#include "interchange/traces/chakra.h"
#include "ir/numbers.h"
#include "pipeline/arguments.h"
#include "pipeline/draw.h"
#include "pipeline/emit_msccl.h"
#include "pipeline/run.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/call.h"

namespace xccl::python {
namespace {

const LoweredProgram& ProgramOf(const SharedPlan& plan) {
  if (!plan->plan.program) Check(InvalidInput("no program in the plan; hint: plan with lower=True"));
  return *plan->plan.program;
}

py::str EmitSource(const SharedPlan& plan, bool host, const std::string& type, const std::string& op,
                   int32_t threads, const std::string& title) {
  ProgramOf(plan);
  EmitOptions options{
      .target = host ? EmitTarget::kHost : EmitTarget::kCuda, .threads = threads, .title = title};
  options.type = ValueOf(ParseDataType(type), "dtype");
  options.op = ValueOf(ParseReduceOp(op), "redop");
  if (threads < 0 || threads % 32 != 0 || threads > 1024)
    Check(UsageError(fmt::format("threads: {}; expected a multiple of 32 up to 1024", threads)));
  return TextOf(Watched({}, [=](const Caller&) {
    return Emit(plan->plan.program->program, plan->plan.program->collective, options);
  }));
}

std::vector<py::bytes> EmitChakra(const SharedPlan& plan, int64_t size_bytes, const std::string& title) {
  ProgramOf(plan);
  Check(CheckSize(size_bytes), "size");
  std::vector<py::bytes> traces;
  for (const std::string& trace :
       Watched({}, [=](const Caller&) { return ChakraTraces(*plan->plan.program, size_bytes, title); }))
    traces.emplace_back(trace);
  return traces;
}

// 0 is as the plan says.
AskedSizes SizesOf(int64_t min_bytes, int64_t max_bytes) {
  AskedSizes sizes;
  if (min_bytes != 0) sizes.min_bytes = min_bytes;
  if (max_bytes != 0) sizes.max_bytes = max_bytes;
  return sizes;
}

// The text, the line about the sizes that it is selected for, and warnings.
py::tuple EmitMsccl(const SharedPlan& plan, const std::string& executor, const std::string& name,
                    bool in_place, int64_t min_bytes, int64_t max_bytes) {
  ProgramOf(plan);
  MscclXmlOptions options{.name = name, .in_place = in_place};
  options.target = ValueOf(ParseMscclTarget(executor), "executor");
  const MscclXml made = Watched(
      {}, [=](const Caller&) { return EmitMscclXml(plan->plan, options, SizesOf(min_bytes, max_bytes)); });
  return py::make_tuple(TextOf(made.text), made.selection, made.warnings);
}

py::tuple EmitMscclpp(const SharedPlan& plan, const std::string& name, bool in_place, int64_t min_bytes,
                      int64_t max_bytes) {
  ProgramOf(plan);
  const MscclppJson made = Watched({}, [=](const Caller&) {
    return EmitMscclppJson(plan->plan, {.name = name, .in_place = in_place}, SizesOf(min_bytes, max_bytes));
  });
  return py::make_tuple(TextOf(made.text), made.selection, made.warnings);
}

Drawing DrawingOf(const std::string& name) {
  if (name == "svg") return Drawing::kSvg;
  if (name == "dot") return Drawing::kDot;
  return Drawing::kPerfetto;
}

// The picture or the trace, and a line about what it lacks; empty: it lacks nothing.
py::tuple EmitDrawing(const SharedPlan& plan, const std::string& what, int64_t size_bytes) {
  Check(CheckSize(size_bytes), "size");
  Check(CheckNotEmpty(size_bytes, plan->plan.collective), "size");
  const Drawn drawn = Watched({}, [=, drawing = DrawingOf(what)](const Caller&) {
    return DrawPlan(plan->plan, drawing, size_bytes);
  });
  return py::make_tuple(TextOf(drawn.text), TextOf(drawn.note));
}

void WriteFile(const std::string& path, const std::string& data) {
  Watched({}, [=](const Caller&) -> StatusOr<bool> {
    XCCL_RETURN_IF_ERROR(WriteFileAtomically(path, data));
    return true;
  });
}

py::dict Columns(const std::vector<RunRow>& rows) {
  std::vector<int64_t> sizes, counts, wrong, outside;
  std::vector<double> time, slowest, algbw, busbw, predicted;
  py::list in_place;
  for (const RunRow& row : rows) {
    sizes.push_back(row.size_bytes);
    counts.push_back(row.count);
    in_place.append(row.in_place);
    time.push_back(row.time_us);
    slowest.push_back(row.slowest_us);
    algbw.push_back(row.algbw_gb_per_s);
    busbw.push_back(row.busbw_gb_per_s);
    predicted.push_back(row.predicted_us.value_or(std::nan("")));
    wrong.push_back(row.wrong);
    outside.push_back(row.out_of_bounds);
  }
  py::dict columns;
  columns["size_bytes"] = Owned(std::move(sizes));
  columns["count"] = Owned(std::move(counts));
  columns["in_place"] = in_place;
  columns["time_us"] = Owned(std::move(time));
  columns["slowest_us"] = Owned(std::move(slowest));
  columns["algbw_gb_per_s"] = Owned(std::move(algbw));
  columns["busbw_gb_per_s"] = Owned(std::move(busbw));
  columns["predicted_us"] = Owned(std::move(predicted));
  columns["wrong"] = Owned(std::move(wrong));
  columns["out_of_bounds"] = Owned(std::move(outside));
  return columns;
}

// On a thread of this process for every rank; ends after a size when the caller stops.
py::dict RunOnThreads(const SharedPlan& plan, const std::vector<int64_t>& sizes, const std::string& type,
                      const std::string& op, int32_t iterations, int32_t warmup, double time_limit_s,
                      const Watching& watching) {
  ProgramOf(plan);
  RunSettings settings{.options = {.iterations = iterations, .warmup = warmup}, .gpus = {}};
  settings.options.type = ValueOf(ParseDataType(type), "dtype");
  settings.options.op = ValueOf(ParseReduceOp(op), "redop");
  if (iterations < 1 || warmup < 0)
    Check(UsageError(fmt::format("iters, warmup: {}, {}; expected at least 1 and 0", iterations, warmup)));
  if (!(time_limit_s > 0)) Check(UsageError(fmt::format("timeout: {}; expected more than 0", time_limit_s)));
  for (const int64_t size : sizes) Check(CheckSize(size), "sizes");
  const std::chrono::duration<double> limit(std::min(time_limit_s, 1e9));
  settings.options.time_limit = std::chrono::duration_cast<std::chrono::nanoseconds>(limit);
  return Columns(Watched(watching, [=](const Caller& caller) -> StatusOr<std::vector<RunRow>> {
    std::vector<RunRow> rows;
    for (const int64_t size : sizes) {
      if (caller.Stopped()) break;
      XCCL_ASSIGN_OR_RETURN(const RunResult result, RunPlan("plan", plan->plan, {}, {size}, settings, {}));
      rows.insert(rows.end(), result.rows.begin(), result.rows.end());
    }
    return rows;
  }));
}

}  // namespace

void BindEmit(py::module_& module) {
  module.def("emit_source", &EmitSource);
  module.def("emit_chakra", &EmitChakra);
  module.def("emit_msccl", &EmitMsccl);
  module.def("emit_mscclpp", &EmitMscclpp);
  module.def("emit_drawing", &EmitDrawing);
  module.def("write_file", &WriteFile);
  module.def("run", &RunOnThreads);
}

}  // namespace xccl::python
