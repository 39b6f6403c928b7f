#include "pipeline/emit.h"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "base/files.h"
#include "ir/plan.h"
#include "ir/verify/read_plan.h"
#include "runtime/cuda/kernel_source.h"
#include "runtime/cuda/nvcc.h"

namespace xccl {
namespace {

std::string WithoutEnding(std::string name, std::string_view ending) {
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

}  // namespace

StatusOr<std::vector<PlanCubin>> WriteKernel(const std::string& source, const std::string& path,
                                             TypeClass types, bool reduces, const AheadOfTime& ahead) {
  XCCL_RETURN_IF_ERROR(WriteFileAtomically(path, source));
  std::vector<DataType> wanted = ahead.types;
  if (wanted.empty()) wanted = {types == TypeClass::kInteger ? DataType::kInt32 : DataType::kFloat};
  std::vector<ReduceOp> ops = ahead.ops;
  if (ops.empty() || !reduces) ops = {ReduceOp::kSum};
  const std::string stem = WithoutEnding(path, ".cu");
  const size_t name = path.rfind('/') + 1;  // 0 without a slash
  std::vector<PlanCubin> cubins;
  for (const int32_t arch : ahead.archs) {
    for (const DataType type : wanted) {
      for (const ReduceOp op : ops) {
        const std::string file =
            fmt::format("{}.sm_{}.{}.{}.cubin", stem, arch, ToString(type), ToString(op));
        XCCL_ASSIGN_OR_RETURN(
            const std::string image,
            cuda::CompileWithNvcc(ahead.nvcc, cuda::KernelRequest(path, source, type, op, arch)));
        XCCL_RETURN_IF_ERROR(WriteFileAtomically(file, image));
        cubins.push_back({file.substr(name), arch, type, op, cuda::MadeFrom(source)});
      }
    }
  }
  return cubins;
}

StatusOr<std::vector<std::string>> WriteBookKernels(PlanBook book, const EmitOptions& emit,
                                                    const AheadOfTime& ahead) {
  std::vector<std::string> left_out;
  for (PlanBookEntry& entry : book.entries) {
    const std::string path = book.PathOf(entry);
    XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(path));
    if (!plan.program) return InvalidInput(path + ": has no program; expected one lowered with -o");
    EmitOptions options = emit;
    options.title = entry.file;
    const std::string kernel = WithoutEnding(WithoutEnding(entry.file, ".json"), ".plan") + ".cu";
    const StatusOr<std::string> source = Emit(plan.program->program, plan.program->collective, options);
    // A plan that is too large to emit is not an error, because the interpreter kernel runs it.
    if (!source.ok()) {
      left_out.push_back(
          fmt::format("{}: left to the interpreter kernel: {}", path, source.status().message()));
      entry.kernel.clear();
      entry.cubins.clear();
      continue;
    }
    XCCL_ASSIGN_OR_RETURN(entry.cubins, WriteKernel(*source, book.directory + "/" + kernel, entry.types,
                                                    plan.collective.Reduces(), ahead));
    entry.kernel = kernel;
  }
  XCCL_RETURN_IF_ERROR(WritePlanBook(book));
  return left_out;
}

}  // namespace xccl
