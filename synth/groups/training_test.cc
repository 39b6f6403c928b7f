// Checks numbers of the papers, computed by hand from their formulas.
#include "synth/groups/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "synth/groups/model.h"

namespace xccl {
namespace {

TrainingJob Job(const std::string& model, const std::string& of_interest) {
  TrainingJob job;
  job.model = ModelNamed(model).value();
  job.of_interest = ParseParallelisms(of_interest).value();
  return job;
}

TEST(Models, ParametersAreTheReleasedOnes) {
  struct Case {
    std::string name;
    int64_t params;
    double relative;  // error that is allowed
  };
  const std::vector<Case> cases = {
      {"llama-3-8b", 8'030'261'248, 0},       // of the released weights, which have no biases
      {"llama-3-70b", 70'553'706'496, 0},     // likewise
      {"llama-3-405b", 405'853'388'800, 0},   // likewise
      {"mixtral-8x7b", 46'702'792'704, 0},    // likewise
      {"gpt-3-175b", 175'000'000'000, 3e-3},  // Table 2.1 rounds; biases are left out
  };
  ASSERT_EQ(cases.size(), KnownModels().size());
  for (const Case& c : cases) {
    const int64_t params = CountParameters(ModelNamed(c.name).value()).total();
    EXPECT_NEAR(static_cast<double>(params), static_cast<double>(c.params),
                c.relative * static_cast<double>(c.params))
        << c.name;
  }
  // 12.9 billion are used by a token (Mixtral of Experts, section 2): two of eight experts.
  const ParameterCount mixtral = CountParameters(ModelNamed("mixtral-8x7b").value());
  EXPECT_NEAR(static_cast<double>(mixtral.dense + mixtral.experts / 4), 12.9e9, 0.05e9);
  EXPECT_EQ(ModelNamed("lama-3-8b").status().message(), "no model 'lama-3-8b'; did you mean 'llama-3-8b'?");
}

struct Expected {
  std::string line;  // "tp activations allreduce"
  size_t groups;
  int32_t ranks;
  int64_t bytes, count;
};

void ExpectLines(const TrainingJob& job, int64_t ranks, const std::vector<Expected>& expected) {
  const StatusOr<std::vector<TrainingLine>> lines = TrainingLines(job, ranks);
  ASSERT_TRUE(lines.ok()) << lines.status().message();
  ASSERT_EQ(lines->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const TrainingLine& line = (*lines)[i];
    const ProcessGroup& group = line.request.groups.front();
    EXPECT_EQ(std::string(ToString(line.parallelism)) + " " + line.what + " " + group.collective.name(),
              expected[i].line);
    EXPECT_EQ(line.request.groups.size(), expected[i].groups) << expected[i].line;
    EXPECT_EQ(group.collective.num_members(), expected[i].ranks) << expected[i].line;
    EXPECT_EQ(group.size_bytes, expected[i].bytes) << expected[i].line;
    EXPECT_EQ(line.count, expected[i].count) << expected[i].line;
  }
}

// Shoeybi et al. 2019: an allreduce of b·s·h elements twice forwards, twice backwards in each layer.
// Korthikanti et al. 2022: an allgather and a reduce_scatter of as many in place of each.
TEST(TrainingLines, TensorAndSequenceParallel) {
  TrainingJob job = Job("gpt-3-175b", "tp");
  job.micro_batches = 3;
  const int64_t bytes = int64_t{2048} * 12288 * 2;  // 48 MiB
  ExpectLines(job, 8, {{"tp activations allreduce", 1, 8, bytes, 4 * 96 * 3}});
  job.of_interest = ParseParallelisms("sp").value();
  job.tp = 4;
  job.pp = 8;
  job.micro_batch = 2;
  ExpectLines(job, 64,
              {{"sp activations allgather", 16, 4, 2 * bytes, 4 * 12 * 3},
               {"sp activations reduce_scatter", 16, 4, 2 * bytes, 4 * 12 * 3}});
}

// Rajbhandari et al. 2020: 2Ψ for stages 1 and 2, 3Ψ for stage 3, counted as reduce_scatter and allgather of
// Ψ.
TEST(TrainingLines, DataParallel) {
  TrainingJob job = Job("llama-3-8b", "dp");
  job.micro_batches = 4;
  const int64_t params = 8'030'261'248;
  ExpectLines(job, 64, {{"dp gradients allreduce", 1, 64, 2 * params, 1}});
  job.of_interest = ParseParallelisms("zero1").value();
  job.grad_bytes = 4;
  job.tp = 2;
  job.pp = 4;
  ExpectLines(job, 64,
              {{"zero1 gradients reduce_scatter", 8, 8, 4 * (params / 8), 1},
               {"zero1 parameters allgather", 8, 8, 2 * (params / 8), 1}});
  job.of_interest = ParseParallelisms("zero2").value();
  ExpectLines(job, 64,
              {{"zero2 gradients reduce_scatter", 8, 8, 4 * (params / 8), 4},
               {"zero2 parameters allgather", 8, 8, 2 * (params / 8), 1}});
  job.of_interest = ParseParallelisms("zero3").value();
  const int64_t layer = params / 8 / 8;
  ExpectLines(job, 64,
              {{"zero3 parameters allgather", 8, 8, 2 * layer, 2 * 8 * 4},
               {"zero3 gradients reduce_scatter", 8, 8, 4 * layer, 8 * 4}});
}

TEST(TrainingLines, StagesSendForwardsAndBack) {
  TrainingJob job = Job("llama-3-70b", "pp");
  job.pp = 4;
  job.tp = 8;
  job.micro_batches = 16;
  const int64_t bytes = int64_t{8192} * 8192 * 2;
  ExpectLines(job, 64,
              {{"pp activations sendrecv", 16, 4, bytes, 16}, {"pp gradients sendrecv", 16, 4, bytes, 16}});
  const std::vector<TrainingLine> lines = TrainingLines(job, 64).value();
  using Pairs = std::vector<std::pair<Rank, Rank>>;
  EXPECT_EQ(lines[0].request.groups[1].collective.spec().pairs,
            (Pairs{{Rank(1), Rank(17)}, {Rank(17), Rank(33)}, {Rank(33), Rank(49)}}));
  EXPECT_EQ(lines[1].request.groups[0].collective.spec().pairs,
            (Pairs{{Rank(16), Rank(0)}, {Rank(32), Rank(16)}, {Rank(48), Rank(32)}}));
  // With sequence parallelism each rank sends its tokens alone.
  job.of_interest = ParseParallelisms("pp,sp").value();
  EXPECT_EQ(TrainingLines(job, 64).value()[0].request.groups[0].size_bytes, bytes / 8);
}

// Lepikhin et al. 2020 (GShard): tokens go to their experts and come back, forwards and backwards.
TEST(TrainingLines, Experts) {
  TrainingJob job = Job("mixtral-8x7b", "ep,zero1");
  job.model.sequence = 4096;
  job.micro_batches = 1;
  const int64_t tokens = int64_t{4096} * 4096 * 2;
  const ParameterCount params = CountParameters(job.model);
  ExpectLines(job, 16,
              {{"ep tokens alltoall", 2, 8, 2 * tokens, 4 * 32},
               {"zero1 gradients reduce_scatter", 1, 16, 2 * params.dense, 1},
               {"zero1 parameters allgather", 1, 16, 2 * params.dense, 1},
               {"zero1 expert gradients reduce_scatter", 8, 2, 2 * (params.experts / 8), 1},
               {"zero1 expert parameters allgather", 8, 2, 2 * (params.experts / 8), 1}});
}

// An open degree is the largest that divides data parallel ranks and experts.
TEST(TrainingLines, ExpertsAreSharedByAsManyRanksAsDivide) {
  const TrainingJob job = Job("mixtral-8x7b", "ep");
  EXPECT_EQ(LayoutOf(job, 12).value(), (Layout{.tp = 1, .ulysses = 1, .ep = 4, .dp = 12, .pp = 1}));
  EXPECT_EQ(LayoutOf(job, 16).value(), (Layout{.tp = 1, .ulysses = 1, .ep = 8, .dp = 16, .pp = 1}));
  EXPECT_EQ(LayoutOf(job, 7).value(), (Layout{.tp = 1, .ulysses = 1, .ep = 1, .dp = 7, .pp = 1}));
}

// Jacobs et al. 2023: per layer forwards an alltoall of queries, keys and values, N·h each, and one of the
// result, over P ranks; grouped queries have fewer keys and values.
TEST(TrainingLines, Ulysses) {
  TrainingJob job = Job("gpt-3-175b", "ulysses");
  job.micro_batches = 1;
  const int64_t own = int64_t{2048} / 8 * 12288 * 2;
  ExpectLines(job, 8,
              {{"ulysses projections alltoall", 1, 8, 3 * own, 2 * 96},
               {"ulysses results alltoall", 1, 8, own, 2 * 96}});
  job = Job("llama-3-8b", "ulysses,dp");
  job.micro_batches = 1;
  job.ulysses = 4;
  const int64_t llama = int64_t{8192} / 4 * 4096 * 2;
  ExpectLines(job, 16,
              {{"ulysses projections alltoall", 4, 4, llama + llama / 2, 2 * 32},
               {"ulysses results alltoall", 4, 4, llama, 2 * 32},
               {"dp gradients allreduce", 1, 16, 2 * int64_t{8'030'261'248}, 1}});
}

// Megatron-LM's order tp-cp-ep-dp-pp: neighbours are tensor parallel, stages are farthest apart.
TEST(TrainingLines, RanksAreInMegatronsOrder) {
  TrainingJob job = Job("mixtral-8x7b", "tp,ep,dp,pp");
  job.tp = 2;
  job.ep = 2;
  job.dp = 4;
  job.pp = 2;
  const std::vector<TrainingLine> lines = TrainingLines(job, 16).value();
  std::map<std::string, std::vector<int32_t>> first, last;
  for (const TrainingLine& line : lines) {
    const std::string key = std::string(ToString(line.parallelism)) + " " + line.what;
    for (Rank r : line.request.groups.front().collective.ranks()) first[key].push_back(r.value);
    for (Rank r : line.request.groups.back().collective.ranks()) last[key].push_back(r.value);
  }
  using Ranks = std::vector<int32_t>;
  EXPECT_EQ(first["tp activations"], (Ranks{0, 1}));
  EXPECT_EQ(last["tp activations"], (Ranks{14, 15}));
  EXPECT_EQ(first["ep tokens"], (Ranks{0, 2}));
  EXPECT_EQ(last["ep tokens"], (Ranks{13, 15}));
  EXPECT_EQ(first["dp gradients"], (Ranks{0, 2, 4, 6}));
  EXPECT_EQ(first["dp expert gradients"], (Ranks{0, 4}));
  EXPECT_EQ(last["dp expert gradients"], (Ranks{11, 15}));
  EXPECT_EQ(first["pp activations"], (Ranks{0, 8}));
}

TEST(TrainingLines, WrongJobs) {
  struct Case {
    std::string of_interest;
    std::optional<int64_t> tp, pp, dp, ep;
    int64_t ranks;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"tp", 3, {}, {}, {}, 12, "--tp times --ulysses: 3; expected a divisor of 32 heads"},
      {"pp", {}, 3, {}, {}, 12, "--pp: 3; expected a divisor of 32 layers"},
      {"tp", 8, {}, {}, {}, 12, "degrees of parallelism multiply to 8; expected a divisor of 12 ranks"},
      {"tp", 2, {}, 2, {}, 8, "degrees of parallelism multiply to 4; expected 8 ranks"},
      {"tp,dp", {}, {}, {}, {}, 8, "--tp: not given, and not the only degree that is open; hint: --tp=2"},
      {"tp,pp", {}, {}, {}, {}, 8, "--pp: not given, and not the only degree that is open; hint: --pp=2"},
      {"ep", {}, {}, {}, 3, 12, "--ep: 3; expected a divisor of 8 experts"},
      {"ep", {}, {}, {}, 8, 4, "--ep: 8; expected a divisor of 4 data parallel ranks"},
  };
  for (const Case& c : cases) {
    TrainingJob job = Job("mixtral-8x7b", c.of_interest);
    job.tp = c.tp;
    job.pp = c.pp;
    job.dp = c.dp;
    job.ep = c.ep;
    const Status status = TrainingLines(job, c.ranks).status();
    EXPECT_EQ(status.message(), c.message);
    EXPECT_EQ(status.code(), StatusCode::kUsage);
  }
  struct Numbers {
    std::function<void(TrainingJob&)> change;
    std::string message;
  };
  static constexpr int64_t kHuge = int64_t{1} << 50;  // products of such numbers overflowed
  const std::vector<Numbers> numbers = {
      {[](TrainingJob& j) { j.tp = kHuge, j.pp = kHuge; },
       "--tp: 1125899906842624; expected at most 8, the ranks"},
      {[](TrainingJob& j) { j.tp = 8, j.pp = 8, j.dp = 8; },
       "degrees of parallelism multiply to 512; expected a divisor of 8 ranks"},
      {[](TrainingJob& j) { j.ep = 2; }, "--ep: 2 of a model without experts; hint: --llm=mixtral-8x7b"},
      {[](TrainingJob& j) { j.micro_batch = kHuge; },
       "--micro-batch: activations of more than 2^50 bytes; hint: --micro-batch=1"},
      {[](TrainingJob& j) { j.micro_batches = kHuge; },
       "--for tp: activations more than 10^9 times a step; hint: --micro-batches=1"},
      {[](TrainingJob& j) { j.model.layers = kHuge; },
       "--layers 1125899906842624 --hidden 4096: a model of more than 2^50 parameters; expected fewer"},
      {[](TrainingJob& j) { j.model.params = kHuge, j.grad_bytes = 8; },
       "--for dp: gradients of more than 2^50 bytes; expected 1 to 2^50"},
      {[](TrainingJob& j) { j.model.params = 1, j.tp = 2; },
       "--for dp: gradients of no bytes; expected 1 to 2^50"},
      {[](TrainingJob& j) { j.model.vocab = 0; },
       "--vocab: not given; hint: --llm=llama-3-8b has all of a model"},
      {[](TrainingJob& j) { j.model.heads = 3; },
       "--heads: 3; expected a divisor of 4096 hidden values (--hidden)"},
      {[](TrainingJob& j) { j.model.kv_heads = 7; }, "--kv-heads: 7; expected a divisor of 32 heads"},
      {[](TrainingJob& j) { j.model.top_k = 2; }, "--top-k: 2; expected at most 1, the experts of a layer"},
  };
  for (const Numbers& c : numbers) {
    TrainingJob job = Job("llama-3-8b", "tp,dp");
    job.tp = 4;
    c.change(job);
    EXPECT_EQ(TrainingLines(job, 8).status().message(), c.message);
  }
  EXPECT_EQ(TrainingLines(Job("llama-3-8b", "ep"), 8).status().message(),
            "--for ep: a model without experts; hint: --llm=mixtral-8x7b");
  TrainingJob empty;
  empty.of_interest = {Parallelism::kTp};
  EXPECT_EQ(TrainingLines(empty, 8).status().message(),
            "--layers: not given; hint: --llm=llama-3-8b has all of a model");
  const std::vector<std::pair<std::string, std::string>> names = {
      {"tpp",
       "no parallelism 'tpp'; did you mean 'tp'?; expected dp, zero1, zero2, zero3, tp, sp, ulysses, pp or "
       "ep"},
      {"tp,tp", "'tp' is given twice; expected each parallelism once"},
      {"dp,zero3", "'zero3' with another of dp, zero1, zero2 and zero3; expected one of them"},
      {"tp,sp", "'sp': sp is tp with its tokens in shards; expected one of them"},
  };
  for (const auto& [text, message] : names) EXPECT_EQ(ParseParallelisms(text).status().message(), message);
}

}  // namespace
}  // namespace xccl
