#include "base/strings.h"
#include "cli/flags.h"
#include "synth/groups/model.h"

namespace xccl {
namespace {

struct Number {
  const char* flag;
  std::optional<int64_t> TrainingFlags::*value;
  const char* what;
  int64_t ModelConfig::*of_model = nullptr;  // what it sets, where that is a number of the model
};

constexpr Number kNumbers[] = {
    {"--tp", &TrainingFlags::tp, "--for: tensor parallel ranks"},
    {"--pp", &TrainingFlags::pp, "--for: pipeline stages"},
    {"--dp", &TrainingFlags::dp, "--for: data parallel ranks (default: what the others leave)"},
    {"--ep", &TrainingFlags::ep, "--for: expert parallel ranks, a divisor of --dp"},
    {"--ulysses", &TrainingFlags::ulysses, "--for: sequence parallel ranks as DeepSpeed-Ulysses has them"},
    {"--micro-batch", &TrainingFlags::micro_batch, "--for: sequences of one rank at a time (default 1)"},
    {"--micro-batches", &TrainingFlags::micro_batches, "--for: of them in a step (default: --pp)"},
    {"--seq", &TrainingFlags::sequence, "--for: tokens of a sequence", &ModelConfig::sequence},
    {"--layers", &TrainingFlags::layers, "--for: layers, in place of the model's", &ModelConfig::layers},
    {"--hidden", &TrainingFlags::hidden, "--for: hidden size", &ModelConfig::hidden},
    {"--heads", &TrainingFlags::heads, "--for: attention heads", &ModelConfig::heads},
    {"--kv-heads", &TrainingFlags::kv_heads, "--for: heads of keys and values", &ModelConfig::kv_heads},
    {"--ffn", &TrainingFlags::ffn, "--for: inner size of the feed-forward blocks", &ModelConfig::ffn},
    {"--vocab", &TrainingFlags::vocab, "--for: vocabulary", &ModelConfig::vocab},
    {"--experts", &TrainingFlags::experts, "--for: experts of a layer", &ModelConfig::experts},
    {"--top-k", &TrainingFlags::top_k, "--for: experts of a token", &ModelConfig::top_k},
    {"--params", &TrainingFlags::params, "--for: parameters, in place of what the formula says",
     &ModelConfig::params},
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
  XCCL_ASSIGN_OR_RETURN(job.of_interest, FlagValue("--for", ParseParallelisms(flags.of_interest)));
  ModelConfig& model = job.model;
  model.name = "model";
  if (!flags.llm.empty()) {
    XCCL_ASSIGN_OR_RETURN(model, FlagValue("--llm", ModelNamed(flags.llm)));
  }
  for (const Number& number : kNumbers)
    if (number.of_model != nullptr && flags.*number.value) model.*number.of_model = *(flags.*number.value);
  job.micro_batch = flags.micro_batch.value_or(job.micro_batch);
  job.bytes = flags.bytes.value_or(job.bytes);
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
