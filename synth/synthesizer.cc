// The list of engines. An engine adds itself with one line.
#include "synth/synthesizer.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "synth/engines.h"
#include "synth/greedy.h"

namespace xccl {

std::span<const TextbookEngine* const> TextbookEngines() {
  static const TextbookEngine* const engines[] = {
      &RingEngine(), &TreeEngine(), &BinomialEngine(), &DoubleBinaryTreeEngine(), &HalvingDoublingEngine(), &RecursiveDoublingEngine(), &BruckEngine(), &PairwiseEngine(), &Ring2dEngine(), &Torus2dEngine(), &HierarchicalRingEngine(), &DirectEngine()};
  return engines;
}

std::span<const std::unique_ptr<Synthesizer>> AllSynthesizers() {
  static const std::vector<std::unique_ptr<Synthesizer>> all = [] {
    std::vector<std::unique_ptr<Synthesizer>> made;
    for (const TextbookEngine* engine : TextbookEngines()) made.push_back(MakeTextbook(*engine));
    made.push_back(MakeGreedy());
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
  return UsageError(fmt::format("no engine '{}'{}", name, DidYouMean(name, known)));
}

}  // namespace xccl
