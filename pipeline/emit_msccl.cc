#include "pipeline/emit_msccl.h"

#include <string>
#include <utility>
#include <vector>

#include "interchange/mscclpp/read.h"
#include "pipeline/lower_for_executor.h"

namespace xccl {
namespace {

void Append(std::vector<std::string> more, std::vector<std::string>& warnings) {
  for (std::string& warning : more) warnings.push_back(std::move(warning));
}

// Writes the file for the sizes of `sizes`; a missing limit is the plan's limit, or MSCCL++'s own upper limit
// if that is smaller. The writer reports MSCCL++'s upper limit only with the finished file. If the plan's
// limit is smaller, the file is written a second time.
StatusOr<MscclppJson> WriteForSizes(const LoweredProgram& lowered, MscclppOptions options, const Plan& plan,
                                    const AskedSizes& sizes) {
  // MSCCL++ counts the input of one rank. In a gather this is one of `parts` parts of the size.
  const int64_t parts = plan.collective.kind() == CollectiveKind::kGather ? plan.collective.num_members() : 1;
  const int64_t plans_most = plan.sizes.max_bytes / parts;
  options.min_bytes = sizes.min_bytes.value_or((plan.sizes.min_bytes + parts - 1) / parts);
  options.max_bytes = sizes.max_bytes.value_or(0);
  StatusOr<MscclppJson> json = WriteMscclppJson(lowered.program, lowered.collective, options);
  if (!json.ok() || sizes.max_bytes || plans_most == 0 || plans_most >= json->max_bytes) return json;
  options.max_bytes = plans_most;
  return WriteMscclppJson(lowered.program, lowered.collective, options);
}

// Proves the file by reading it back. Errors: kLimit if the file is too large to be proved; otherwise the
// error of the first rule that the file breaks, in one call or in several calls in a row.
Status Prove(const MscclppJson& json, const std::string& name, const Plan& plan) {
  const StatusOr<Imported> read = ReadMscclppJson(
      json.text, {.file = name, .collective = plan.collective.kind(), .root = plan.collective.spec().root});
  if (read.ok() && !read->in_a_row.empty()) return InvalidInput(read->in_a_row);
  return read.status();
}

}  // namespace

StatusOr<MscclXml> EmitMscclXml(const Plan& plan, MscclXmlOptions options, const AskedSizes& sizes) {
  options.min_bytes = sizes.min_bytes.value_or(plan.sizes.min_bytes);
  options.max_bytes = sizes.max_bytes.value_or(plan.sizes.max_bytes);
  XCCL_ASSIGN_OR_RETURN(ExecutorProgram lowered, LowerFor(options, plan));
  XCCL_ASSIGN_OR_RETURN(MscclXml xml,
                        WriteMscclXml(lowered.lowered.program, lowered.lowered.collective, options));
  Append(std::move(lowered.warnings), xml.warnings);
  return xml;
}

StatusOr<MscclppJson> EmitMscclppJson(const Plan& plan, MscclppOptions options, const AskedSizes& sizes) {
  options.domains = LoadStoreDomains(plan.topology);
  ExecutorProgram lowered = LowerFor(options, plan);
  XCCL_ASSIGN_OR_RETURN(MscclppJson json, WriteForSizes(lowered.lowered, options, plan, sizes));
  const Status proved = Prove(json, options.name, plan);
  if (proved.code() == StatusCode::kLimit) {
    json.warnings.push_back(proved.message() + ": the file is not read back");
  } else if (!proved.ok()) {
    return Annotate(proved, "MSCCL++ would not run what is written of the plan");
  }
  Append(std::move(lowered.warnings), json.warnings);
  return json;
}

}  // namespace xccl
