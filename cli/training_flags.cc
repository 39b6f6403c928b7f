#include "cli/training_flags.h"

#include "base/strings.h"
#include "cli/flags.h"
#include "synth/groups/model.h"

namespace xccl {
namespace {

struct Number {
  const char* flag;
  std::optional<int64_t> TrainingFlags::*value;
  const char* what;
};

constexpr Number kNumbers[] = {
    {"--tp", &TrainingFlags::tp, "--for: tensor parallel ranks"},
    {"--pp", &TrainingFlags::pp, "--for: pipeline stages"},
    {"--dp", &TrainingFlags::dp, "--for: data parallel ranks (default: what the others leave)"},
    {"--ep", &TrainingFlags::ep, "--for: expert parallel ranks, a divisor of --dp"},
    {"--ulysses", &TrainingFlags::ulysses, "--for: sequence parallel ranks as DeepSpeed-Ulysses has them"},
    {"--micro-batch", &TrainingFlags::micro_batch, "--for: sequences of one rank at a time (default 1)"},
    {"--micro-batches", &TrainingFlags::micro_batches, "--for: of them in a step (default: --pp)"},
    {"--seq", &TrainingFlags::sequence, "--for: tokens of a sequence"},
    {"--layers", &TrainingFlags::layers, "--for: layers, in place of the model's"},
    {"--hidden", &TrainingFlags::hidden, "--for: hidden size"},
    {"--heads", &TrainingFlags::heads, "--for: attention heads"},
    {"--kv-heads", &TrainingFlags::kv_heads, "--for: heads of keys and values"},
    {"--ffn", &TrainingFlags::ffn, "--for: inner size of the feed-forward blocks"},
    {"--vocab", &TrainingFlags::vocab, "--for: vocabulary"},
    {"--experts", &TrainingFlags::experts, "--for: experts of a layer"},
    {"--top-k", &TrainingFlags::top_k, "--for: experts of a token"},
    {"--params", &TrainingFlags::params, "--for: parameters, in place of what the formula says"},
    {"--bytes", &TrainingFlags::bytes, "--for: of an activation or a parameter (default 2)"},
    {"--grad-bytes", &TrainingFlags::grad_bytes, "--for: of a gradient (default: --bytes)"},
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
  for (const Number& number : kNumbers)
    command.AddOption(number.flag, flags.*number.value, number.what).Between(int64_t{1}, int64_t{1} << 50);
}

std::string FlagWithoutJob(const TrainingFlags& flags) {
  if (!flags.llm.empty()) return "--llm";
  for (const Number& number : kNumbers)
    if (flags.*number.value) return number.flag;
  return "";
}

StatusOr<TrainingJob> MakeTrainingJob(const TrainingFlags& flags) {
  TrainingJob job;
  StatusOr<std::vector<Parallelism>> parsed = ParseParallelisms(flags.of_interest);
  if (!parsed.ok()) return FlagError(parsed.status(), "--for");
  job.of_interest = *std::move(parsed);
  if (!flags.llm.empty()) {
    StatusOr<ModelConfig> model = ModelNamed(flags.llm);
    if (!model.ok()) return FlagError(model.status(), "--llm");
    job.model = *std::move(model);
  } else {
    job.model.name = "model";
  }
  ModelConfig& model = job.model;
  const std::pair<const std::optional<int64_t>&, int64_t&> numbers[] = {
      {flags.layers, model.layers},
      {flags.hidden, model.hidden},
      {flags.heads, model.heads},
      {flags.kv_heads, model.kv_heads},
      {flags.ffn, model.ffn},
      {flags.vocab, model.vocab},
      {flags.sequence, model.sequence},
      {flags.experts, model.experts},
      {flags.top_k, model.top_k},
      {flags.params, model.params},
      {flags.micro_batch, job.micro_batch},
      {flags.bytes, job.bytes},
  };
  for (const auto& [given, value] : numbers)
    if (given) value = *given;
  if (model.kv_heads == 0 || (flags.heads && !flags.kv_heads)) model.kv_heads = model.heads;
  job.grad_bytes = flags.grad_bytes.value_or(job.bytes);
  job.tp = flags.tp;
  job.pp = flags.pp;
  job.dp = flags.dp;
  job.ep = flags.ep;
  job.ulysses = flags.ulysses;
  job.micro_batches = flags.micro_batches;
  return job;
}

}  // namespace xccl
