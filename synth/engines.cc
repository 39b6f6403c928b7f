// The list of engines. An engine adds itself with one line.
#include "synth/engines.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "synth/bfb/bfb.h"
#include "synth/flow/flow.h"
#include "synth/forest/forest.h"
#include "synth/greedy/greedy.h"
#include "synth/portfolio/auto.h"
#include "synth/smt/smt.h"
#include "synth/switches/in_network.h"
#include "synth/switches/multicast.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/hierarchical_alltoall.h"

namespace xccl {

namespace {

bool IsWitness(std::string_view name) {
  return name != "hierarchical-alltoall" && name != "multicast" && name != "in-network" && name != "forest";
}

std::vector<const Synthesizer*> WitnessesAmong(const std::vector<std::unique_ptr<Synthesizer>>& engines) {
  std::vector<const Synthesizer*> witnesses;
  for (const std::unique_ptr<Synthesizer>& engine : engines)
    if (IsWitness(engine->name())) witnesses.push_back(engine.get());
  return witnesses;
}

}  // namespace

std::span<const std::unique_ptr<Synthesizer>> AllSynthesizers() {
  static const std::vector<std::unique_ptr<Synthesizer>> all = [] {
    std::vector<std::unique_ptr<Synthesizer>> made;
    for (const TextbookEngine* engine : TextbookEngines()) made.push_back(MakeTextbook(*engine));
    made.push_back(MakeHierarchicalAlltoall());
    made.push_back(MakeMulticast());
    made.push_back(MakeInNetwork());
    made.push_back(MakeBfb());
    made.push_back(MakeForest());
    made.push_back(MakeFlow());
    made.push_back(MakeGreedy());
    made.push_back(MakeSmt(WitnessesAmong(made)));
    made.push_back(MakeAuto());
    return made;
  }();
  return all;
}

std::span<const Synthesizer* const> WitnessEngines() {
  static const std::vector<const Synthesizer*> witnesses = [] {
    std::vector<const Synthesizer*> all;
    for (const std::unique_ptr<Synthesizer>& engine : AllSynthesizers())
      if (IsWitness(engine->name()) && engine->name() != "smt" && engine->name() != "auto")
        all.push_back(engine.get());
    return all;
  }();
  return witnesses;
}

StatusOr<const Synthesizer*> FindSynthesizer(std::string_view name) {
  std::vector<std::string_view> known;
  for (const std::unique_ptr<Synthesizer>& synthesizer : AllSynthesizers()) {
    if (synthesizer->name() == name) return synthesizer.get();
    known.push_back(synthesizer->name());
  }
  std::string near = DidYouMean(name, known);
  if (near.empty()) near = fmt::format("; expected one of {}", fmt::join(known, ", "));
  return UsageError(fmt::format("no engine '{}'{}", name, near));
}

}  // namespace xccl
