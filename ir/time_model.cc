#include "ir/time_model.h"

#include "base/strings.h"

namespace xccl {

constexpr std::string_view kNames[] = {"pipelined", "blocking"};  // by TimeModel

std::string_view ToString(TimeModel model) { return kNames[static_cast<size_t>(model)]; }

StatusOr<TimeModel> ParseTimeModel(std::string_view name) {
  for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking})
    if (ToString(model) == name) return model;
  return InvalidInput("no time model '" + std::string(name) + "'; expected pipelined or blocking" +
                      DidYouMean(name, kNames));
}

}  // namespace xccl
