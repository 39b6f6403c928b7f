// Each engine is one line of the table below. The engines of TextbookEngines() share the first line.
#include "synth/engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "synth/bfb/bfb.h"
#include "synth/flow/flow.h"
#include "synth/forest/forest.h"
#include "synth/greedy/greedy.h"
#include "synth/levels/levels_engine.h"
#include "synth/portfolio/auto.h"
#include "synth/rails/rail_trees.h"
#include "synth/replan/mended.h"
#include "synth/smt/smt.h"
#include "synth/switches/switch_trees.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/hierarchical_alltoall.h"
#include "synth/textbook/torus_alltoall.h"

namespace xccl {

std::span<const Engine> AllEngines() {
  static const std::vector<Engine> all = [] {
    std::vector<Engine> rows;
    for (const TextbookEngine& engine : TextbookEngines()) rows.push_back(RowOf(engine));
    rows.push_back(HierarchicalAlltoallEngine());
    rows.push_back(TorusAlltoallEngine());
    rows.push_back(LevelsEngine());
    rows.push_back(RailTreesEngine());
    rows.push_back(MulticastEngine());
    rows.push_back(InNetworkEngine());
    rows.push_back(BfbEngine());
    rows.push_back(ForestEngine());
    rows.push_back(FlowEngine());
    rows.push_back(GreedyEngine());
    rows.push_back(MendedEngine(AllEngines));
    rows.push_back(SmtEngine(AllEngines));
    rows.push_back(AutoEngine(AllEngines));
    return rows;
  }();
  return all;
}

StatusOr<const Engine*> FindEngine(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Engine& engine : AllEngines()) {
    if (engine.name == name) return &engine;
    known.push_back(engine.name);
  }
  return UsageError(IndexOfName("engine", name, known).status().message());
}

const Engine& DefaultEngine() { return *FindEngine(kDefaultEngine).value(); }

const Engine& ImprovingEngine() { return *std::ranges::find_if(AllEngines(), &Engine::starts_from_plan); }

}  // namespace xccl
