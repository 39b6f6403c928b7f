// Collectives and their chunks.
#include "ir/collective.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/collective_json.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/errors.h"
#include "python/bindings/pickle.h"

namespace xccl::python {

void CheckMembers(const Topology& topology, const Collective& collective) {
  for (const Rank rank : collective.ranks())
    if (rank.value >= topology.num_ranks())
      Check(UsageError(
          fmt::format("ranks: no rank {}; ranks are 0..{}", rank.value, topology.num_ranks() - 1)));
}

namespace {

using SharedCollective = std::shared_ptr<Collective>;

SharedCollective Share(Collective collective) { return std::make_shared<Collective>(std::move(collective)); }

SharedCollective Create(const std::string& kind, const std::vector<int32_t>& ranks,
                        std::optional<int32_t> root, std::vector<int64_t> counts,
                        const std::vector<std::pair<int32_t, int32_t>>& pairs) {
  CollectiveSpec spec;
  spec.kind = ValueOf(ParseCollectiveKind(kind), "collective");
  for (const int32_t rank : ranks) spec.ranks.emplace_back(rank);
  if (root) spec.root = Rank(*root);
  if (!root && IsRooted(spec.kind) && !spec.ranks.empty()) spec.root = spec.ranks.front();
  spec.counts = std::move(counts);
  for (const auto& [from, to] : pairs) spec.pairs.emplace_back(Rank(from), Rank(to));
  if (spec.kind == CollectiveKind::kSendrecv && spec.pairs.empty())
    Check(UsageError("sendrecv: no pairs; hint: pairs=[(0, 1), (1, 0)]"));
  if (TraitsOf(spec.kind).counted && spec.counts.empty())
    Check(UsageError(fmt::format("{}: no counts; hint: counts=[...]", kind)));
  return Share(ValueOf(Collective::Create(std::move(spec))));
}

using Row = std::tuple<int32_t, int32_t, std::vector<int32_t>>;  // rank, part, contributions

// A collective of one's own.
SharedCollective Custom(std::string name, const std::vector<int32_t>& ranks, std::vector<int64_t> weights,
                        const std::vector<Row>& before, const std::vector<Row>& after) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.custom_name = std::move(name);
  for (const int32_t rank : ranks) spec.ranks.emplace_back(rank);
  spec.custom_weights = std::move(weights);
  const auto table = [](const std::vector<Row>& rows) {
    std::vector<TableEntry> entries;
    for (const auto& [rank, part, contributions] : rows) {
      TableEntry entry{Rank(rank), PartId(part), {}};
      for (const int32_t contribution : contributions) entry.contributions.emplace_back(contribution);
      std::ranges::sort(entry.contributions);
      entries.push_back(std::move(entry));
    }
    return entries;
  };
  spec.pre = table(before);
  spec.post = table(after);
  return Share(ValueOf(Collective::Create(std::move(spec))));
}

py::dict Chunks(const Collective& collective) {
  std::vector<int32_t> parts;
  std::vector<int64_t> weights;
  if (collective.num_chunks() > kMostParts)
    Check(UsageError(
        fmt::format("chunk_columns: {} chunks; at most {} are listed", collective.num_chunks(), kMostParts)));
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    parts.push_back(collective.PartOf(ChunkId(c)).value);
    weights.push_back(collective.Weight(ChunkId(c)));
  }
  py::dict columns;
  columns["part"] = Owned(std::move(parts));
  columns["weight"] = Owned(std::move(weights));
  return columns;
}

// Who holds which contributions of a chunk, before or after.
std::vector<std::pair<int32_t, std::vector<int32_t>>> Holders(const Collective& collective, int32_t chunk,
                                                              bool before) {
  if (chunk < 0 || chunk >= collective.num_chunks())
    Check(
        UsageError(fmt::format("chunk: no chunk {}; chunks are 0..{}", chunk, collective.num_chunks() - 1)));
  std::vector<Holding> holdings;
  before ? collective.Before(ChunkId(chunk), holdings) : collective.After(ChunkId(chunk), holdings);
  std::vector<std::pair<int32_t, std::vector<int32_t>>> holders;
  for (const Holding& holding : holdings) {
    std::vector<int32_t> contributions;
    for (const Rank rank : holding.contributions) contributions.push_back(rank.value);
    holders.emplace_back(holding.rank.value, std::move(contributions));
  }
  return holders;
}

// The chunk at a place of a part.
int32_t ChunkAt(const Collective& collective, int32_t part, int32_t index) {
  if (part < 0 || part >= collective.num_parts())
    Check(UsageError(fmt::format("part: no part {}; parts are 0..{}", part, collective.num_parts() - 1)));
  const int32_t chunks = collective.ChunksOf(PartId(part));
  if (index < 0 || index >= chunks)
    Check(UsageError(fmt::format("index: part {} has no chunk {}; it has 0..{}", part, index, chunks - 1)));
  return collective.FirstChunk(PartId(part)).value + index;
}

}  // namespace

void BindCollective(py::module_& module) {
  py::class_<Collective, SharedCollective>(module, "Collective")
      .def_static("create", &Create)
      .def_static("custom", &Custom)
      .def_static("from_file", [](const std::string& path,
                                  int32_t ranks) { return Share(ValueOf(ReadCollectiveFile(path, ranks))); })
      .def("with_chunks",
           [](const Collective& collective, int32_t chunks) {
             constexpr int32_t kMost = 1 << 20;
             if (chunks < 1 || chunks > kMost || int64_t{chunks} * collective.num_parts() > (1 << 30))
               Check(UsageError(fmt::format("chunks: {}; expected 1 to {}, and 2^30 in all", chunks, kMost)));
             return Share(collective.WithChunks(chunks));
           })
      .def_property_readonly("name", [](const Collective& c) { return TextOf(c.name()); })
      .def_property_readonly("ranks", [](const SharedCollective& c) { return View(c, c->spec().ranks); })
      .def_property_readonly("root",
                             [](const Collective& c) {
                               return c.spec().root ? std::optional(c.spec().root->value) : std::nullopt;
                             })
      .def_property_readonly("num_parts", &Collective::num_parts)
      .def_property_readonly("num_chunks", &Collective::num_chunks)
      .def_property_readonly("reduces", &Collective::Reduces)
      .def("chunk_columns", &Chunks)
      .def("chunk_at", &ChunkAt)
      .def("holders", &Holders)
      .def(py::pickle([](const Collective& c) { return StateOf(c); }, &CollectiveOfState))
      .def("equals", [](const Collective& a, const Collective& b) { return a == b; });
  std::vector<std::string> names;
  for (const CollectiveKind kind : AllNamedCollectives()) names.emplace_back(ToString(kind));
  module.attr("collective_names") = names;
}

}  // namespace xccl::python
