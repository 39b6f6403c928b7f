// The flags of a training job: a list of parallelisms, a model, then numbers for the degrees and the model's
// figures in a fixed order; '-' leaves one out. "tp,dp gpt3-175b 8 4 - - - 2048".
#include <array>
#include <optional>
#include <sstream>

#include "base/units.h"
#include "synth/groups/training.h"
#include "tests/fuzz/fuzz.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string word, name;
  words >> word >> name;
  TrainingJob job;
  const StatusOr<std::vector<Parallelism>> parallelisms = ParseParallelisms(word);
  if (!parallelisms.ok()) return CheckRefusal(parallelisms.status());
  job.of_interest = *parallelisms;
  const StatusOr<ModelConfig> model = ModelNamed(name);
  if (!model.ok()) return CheckRefusal(model.status());
  job.model = *model;
  // The command line takes the same ranges (cli/training_flags.cc).
  constexpr int64_t kMost = int64_t{1} << 50;
  std::optional<int64_t> ranks = 16;
  const std::array<std::optional<int64_t>*, 7> degrees = {
      &job.tp, &job.pp, &job.dp, &job.ep, &job.ulysses, &job.micro_batches, &ranks};
  const std::array<int64_t*, 9> figures = {&job.micro_batch,    &job.bytes,        &job.grad_bytes,
                                           &job.model.layers,   &job.model.hidden, &job.model.heads,
                                           &job.model.sequence, &job.model.ffn,    &job.model.experts};
  for (size_t i = 0; i < degrees.size() + figures.size() && words >> word; ++i) {
    if (word == "-") continue;
    const StatusOr<int64_t> value = ParseInteger(word, 1, kMost);
    if (!value.ok()) return CheckRefusal(value.status());
    if (i < degrees.size())
      *degrees[i] = *value;
    else
      *figures[i - degrees.size()] = *value;
  }
  *ranks = *ranks % 1024 + 1;
  const StatusOr<std::vector<TrainingLine>> lines = TrainingLines(job, *ranks);
  if (!lines.ok()) return CheckRefusal(lines.status());
  for (const TrainingLine& line : *lines) XCCL_CHECK(!line.request.groups.empty() && line.count >= 1);
}

}  // namespace xccl::testing
