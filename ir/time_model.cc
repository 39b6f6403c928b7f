#include "ir/time_model.h"

#include "base/strings.h"

namespace xccl {

std::string_view ToString(TimeModel model) {
  switch (model) {
    case TimeModel::kPipelined:
      return "pipelined";
    case TimeModel::kBlocking:
      return "blocking";
  }
  return "";
}

StatusOr<TimeModel> ParseTimeModel(std::string_view name) {
  constexpr std::string_view kNames[] = {"pipelined", "blocking"};
  if (name == kNames[0]) return TimeModel::kPipelined;
  if (name == kNames[1]) return TimeModel::kBlocking;
  return InvalidInput("no time model '" + std::string(name) + "'; expected pipelined or blocking" +
                      DidYouMean(name, kNames));
}

}  // namespace xccl
