// The list of engines. An engine adds itself with one line.
#include "synth/synthesizer.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "synth/auto.h"
#include "synth/bfb/bfb.h"
#include "synth/flow/flow.h"
#include "synth/forest/forest.h"
#include "synth/greedy/greedy.h"
#include "synth/smt/smt.h"
#include "synth/switches/in_network.h"
#include "synth/switches/multicast.h"
#include "synth/textbook/engines.h"
#include "synth/two_tier/hierarchical_alltoall.h"

namespace xccl {

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
    made.push_back(MakeSmt());
    made.push_back(MakeAuto());
    return made;
  }();
  return all;
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
