#include <iterator>
#include <type_traits>
#include <variant>

#include "base/strings.h"
#include "cli/flags.h"
#include "synth/groups/model.h"

namespace xccl {
namespace {

using Sets =
    std::variant<std::optional<int64_t> TrainingJob::*, int64_t TrainingJob::*, int64_t ModelConfig::*>;

// A flag with the number of the job or of its model that it sets.
struct Number {
  const char* flag;
  Sets sets;
  const char* what;
};

constexpr Number kNumbers[] = {
    {"--tp", &TrainingJob::tp, "--for: tensor parallel ranks"},
    {"--pp", &TrainingJob::pp, "--for: pipeline stages"},
    {"--dp", &TrainingJob::dp, "--for: data parallel ranks (default: what the others leave)"},
    {"--ep", &TrainingJob::ep, "--for: expert parallel ranks, a divisor of --dp"},
    {"--ulysses", &TrainingJob::ulysses, "--for: sequence parallel ranks as DeepSpeed-Ulysses has them"},
    {"--micro-batch", &TrainingJob::micro_batch, "--for: sequences of one rank at a time (default 1)"},
    {"--micro-batches", &TrainingJob::micro_batches, "--for: micro-batches of a step (default: --pp)"},
    {"--seq", &ModelConfig::sequence, "--for: tokens of a sequence"},
    {"--layers", &ModelConfig::layers, "--for: layers, in place of the model's"},
    {"--hidden", &ModelConfig::hidden, "--for: hidden size"},
    {"--heads", &ModelConfig::heads, "--for: attention heads"},
    {"--kv-heads", &ModelConfig::kv_heads, "--for: heads of keys and values"},
    {"--ffn", &ModelConfig::ffn, "--for: inner size of the feed-forward blocks"},
    {"--vocab", &ModelConfig::vocab, "--for: vocabulary"},
    {"--experts", &ModelConfig::experts,
     "--for: experts of a layer; dispatch, combine: in all, dealt to ranks in\n"
     "order (default 256)"},
    {"--top-k", &ModelConfig::top_k, "--for: experts of a token; dispatch, combine: likewise (default 8)"},
    {"--params", &ModelConfig::params, "--for: parameters, in place of what the formula says"},
    {"--bytes", &TrainingJob::bytes, "--for: bytes of an activation or a parameter (default 2)"},
    {"--grad-bytes", &TrainingJob::grad_bytes, "--for: bytes of a gradient (default: --bytes)"},
};

std::string ModelNames() {
  std::vector<std::string> names;
  for (const ModelConfig& model : KnownModels()) names.push_back(model.name);
  return Join(names, ", ");
}

}  // namespace

void AddTrainingFlags(Command& command, TrainingFlags& flags) {
  command.AddOption(
      "--for", flags.of_interest,
      "plan all collectives of a training step: tp,pp,zero1 and the like, of dp, zero1, zero2,\n"
      "zero3, tp, sp, ulysses, pp, ep; ranks in Megatron-LM's order");
  command.AddOption("--llm", flags.llm, "--for: a known model: " + ModelNames());
  flags.numbers.resize(std::size(kNumbers));
  for (size_t i = 0; i < flags.numbers.size(); ++i)
    command.AddOption(kNumbers[i].flag, flags.numbers[i], kNumbers[i].what).Between(1, int64_t{1} << 50);
}

std::optional<int64_t> NumberOf(const TrainingFlags& flags, std::string_view flag) {
  for (size_t i = 0; i < flags.numbers.size(); ++i)
    if (kNumbers[i].flag == flag) return flags.numbers[i];
  return std::nullopt;
}

std::string FlagWithoutJob(const TrainingFlags& flags) {
  if (!flags.llm.empty()) return "--llm";
  for (size_t i = 0; i < flags.numbers.size(); ++i)
    if (flags.numbers[i]) return kNumbers[i].flag;
  return "";
}

StatusOr<TrainingJob> MakeTrainingJob(const TrainingFlags& flags) {
  TrainingJob job;
  XCCL_ASSIGN_OR_RETURN(job.of_interest, FlagValue("--for", ParseParallelisms(flags.of_interest)));
  ModelConfig& model = job.model;
  model.name = "model";
  if (!flags.llm.empty()) {
    XCCL_ASSIGN_OR_RETURN(model, FlagValue("--llm", ModelNamed(flags.llm)));
  }
  job.grad_bytes = 0;  // not given
  for (size_t i = 0; i < flags.numbers.size(); ++i) {
    if (!flags.numbers[i]) continue;
    const int64_t value = *flags.numbers[i];
    const auto set = [&](auto member) {
      if constexpr (std::is_same_v<decltype(member), int64_t ModelConfig::*>)
        model.*member = value;
      else
        job.*member = value;
    };
    std::visit(set, kNumbers[i].sets);
    // A model's heads of keys and values go with its own attention heads.
    if (kNumbers[i].sets == Sets(&ModelConfig::heads)) model.kv_heads = 0;
  }
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (job.grad_bytes == 0) job.grad_bytes = job.bytes;
  return job;
}

}  // namespace xccl
