// A list of topologies, each a map with its name and exactly one of tree, block, flat, ring and torus3d.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/strings.h"
#include "base/yaml/yaml.h"
#include "topologies/fabric/slurm_file.h"

namespace xccl {
namespace {

using Kind = YamlNode::Kind;

class YamlReader {
 public:
  explicit YamlReader(std::string_view file) : lists_(file) {}

  StatusOr<SlurmFile> Read(const YamlNode& root) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<const YamlNode*> topologies,
                          MapsOf(root, "the file", "topologies"));
    const YamlNode* chosen = nullptr;
    for (const YamlNode* topology : topologies) {
      XCCL_RETURN_IF_ERROR(
          CheckKeys(*topology, "a topology",
                    {"topology", "cluster_default", "tree", "block", "flat", "ring", "torus3d"}));
      if (topology->Find("topology") == nullptr)
        return lists_.Error(topology->line, "a topology without its name; expected 'topology: NAME'");
      XCCL_RETURN_IF_ERROR(CheckOneKind(*topology));
      if (const YamlNode* is_default = topology->Find("cluster_default");
          chosen == nullptr && is_default != nullptr && IsTrue(is_default->text))
        chosen = topology;
    }
    if (topologies.empty()) return lists_.Error(root.line, "no topology; expected one");
    const bool has_default = chosen != nullptr;
    if (!has_default) chosen = topologies.front();
    const YamlNode* const tree = WithKey("tree", chosen, topologies);
    const YamlNode* const block = WithKey("block", chosen, topologies);
    if (tree == nullptr && block == nullptr)
      return lists_.Error(
          chosen->line,
          fmt::format("topology '{}' has neither tree nor block; expected one of them", NameOf(*chosen)));
    if (tree != nullptr) XCCL_RETURN_IF_ERROR(ReadTree(*tree->Find("tree")));
    if (block != nullptr) XCCL_RETURN_IF_ERROR(ReadBlocks(*block->Find("block")));
    if (topologies.size() > 1) WarnOfChoice(topologies.size(), has_default, tree, block);
    return std::move(result_);
  }

 private:
  static bool IsTrue(std::string_view text) {
    return text == "true" || text == "True" || text == "TRUE" || text == "yes" || text == "on";
  }
  // Errors: two of tree, block, flat, ring and torus3d in one topology.
  Status CheckOneKind(const YamlNode& topology) const {
    std::string_view first;
    for (const std::string_view kind : {"tree", "block", "flat", "ring", "torus3d"}) {
      const YamlNode* const value = topology.Find(kind);
      if (value == nullptr || value->text == "false") continue;
      if (!first.empty())
        return lists_.Error(value->line, fmt::format("topology '{}' with {} and {}; expected one of them",
                                                     NameOf(topology), first, kind));
      first = kind;
    }
    return OkStatus();
  }
  static std::string NameOf(const YamlNode& topology) { return Cleaned(topology.Find("topology")->text, 80); }

  // `chosen` if it has the key, else the first topology that has it, else null.
  static const YamlNode* WithKey(std::string_view key, const YamlNode* chosen,
                                 const std::vector<const YamlNode*>& topologies) {
    if (chosen->Find(key) != nullptr) return chosen;
    const auto found =
        std::ranges::find_if(topologies, [&](const YamlNode* t) { return t->Find(key) != nullptr; });
    return found == topologies.end() ? nullptr : *found;
  }

  void WarnOfChoice(size_t count, bool has_default, const YamlNode* tree, const YamlNode* block) {
    std::vector<std::string> taken;
    if (tree != nullptr) taken.push_back(fmt::format("switches of '{}'", NameOf(*tree)));
    if (block != nullptr) taken.push_back(fmt::format("blocks of '{}'", NameOf(*block)));
    const int32_t line = tree != nullptr ? tree->line : block->line;
    result_.warnings.push_back(fmt::format("{}:{}: {} topologies{}; taken: {}", lists_.file(), line, count,
                                           has_default ? "" : ", none of which is the cluster_default",
                                           Join(taken, ", ")));
  }

  Status ReadTree(const YamlNode& tree) {
    if (tree.kind != Kind::kMap)
      return lists_.Error(tree.line, "a tree that is no map; expected 'switches:'");
    XCCL_RETURN_IF_ERROR(CheckKeys(tree, "a tree", {"switches"}));
    const YamlNode* const switches = tree.Find("switches");
    if (switches == nullptr) return lists_.Error(tree.line, "a tree without switches; expected 'switches:'");
    XCCL_ASSIGN_OR_RETURN(const std::vector<const YamlNode*> maps, MapsOf(*switches, "switches", "switches"));
    for (const YamlNode* map : maps) {
      XCCL_RETURN_IF_ERROR(CheckKeys(*map, "a switch", {"switch", "children", "nodes"}));
      SlurmSwitch made;
      made.line = map->line;
      XCCL_RETURN_IF_ERROR(ReadName(*map, "switch", made.name));
      XCCL_RETURN_IF_ERROR(ReadList(*map, "children", made.children));
      XCCL_RETURN_IF_ERROR(ReadList(*map, "nodes", made.hosts));
      result_.switches.push_back(std::move(made));
    }
    return OkStatus();
  }

  Status ReadBlocks(const YamlNode& block) {
    if (block.kind != Kind::kMap)
      return lists_.Error(block.line, "a block that is no map; expected 'blocks:'");
    XCCL_RETURN_IF_ERROR(CheckKeys(block, "a block topology", {"block_sizes", "blocks"}));
    const YamlNode* const blocks = block.Find("blocks");
    if (blocks == nullptr)
      return lists_.Error(block.line, "a block topology without blocks; expected 'blocks:'");
    XCCL_ASSIGN_OR_RETURN(const std::vector<const YamlNode*> maps, MapsOf(*blocks, "blocks", "blocks"));
    for (const YamlNode* map : maps) {
      XCCL_RETURN_IF_ERROR(CheckKeys(*map, "a block", {"block", "nodes"}));
      SlurmBlock made;
      made.line = map->line;
      XCCL_RETURN_IF_ERROR(ReadName(*map, "block", made.name));
      XCCL_RETURN_IF_ERROR(ReadList(*map, "nodes", made.hosts));
      result_.blocks.push_back(std::move(made));
    }
    return OkStatus();
  }

  Status ReadName(const YamlNode& map, std::string_view key, std::string& name) const {
    const YamlNode* const value = map.Find(key);
    if (value == nullptr || value->kind != Kind::kScalar)
      return lists_.Error(map.line, fmt::format("a {0} without its name; expected '{0}: NAME'", key));
    name = value->text;
    return lists_.CheckName(name, key, value->line);
  }

  // A text with a list of names, or a list of such texts.
  Status ReadList(const YamlNode& map, std::string_view key, std::vector<std::string>& names) {
    const YamlNode* const value = map.Find(key);
    if (value == nullptr || (value->kind == Kind::kScalar && value->text.empty())) return OkStatus();
    std::string text = value->text;
    for (const YamlNode& item : value->items) {
      if (value->kind == Kind::kMap || item.kind != Kind::kScalar)
        return lists_.Error(value->line, fmt::format("{} that are no text; expected a list of names", key));
      text += (text.empty() ? "" : ",") + item.text;
    }
    if (text.empty()) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(names, lists_.Expand(text, key, value->line));
    return OkStatus();
  }

  // The maps of a list; a map alone counts as a list of one.
  StatusOr<std::vector<const YamlNode*>> MapsOf(const YamlNode& list, std::string_view place,
                                                std::string_view what) const {
    std::vector<const YamlNode*> maps;
    if (list.kind == Kind::kMap) return std::vector<const YamlNode*>{&list};
    if (list.kind == Kind::kScalar)
      return lists_.Error(
          list.line, fmt::format("{}: '{}'; expected a list of {}", place, Cleaned(list.text, 80), what));
    for (const YamlNode& item : list.items) {
      if (item.kind != Kind::kMap)
        return lists_.Error(item.line,
                            fmt::format("{}: an entry that is no map; expected a list of {}", place, what));
      maps.push_back(&item);
    }
    return maps;
  }

  Status CheckKeys(const YamlNode& map, std::string_view what,
                   std::initializer_list<std::string_view> known) const {
    const std::vector<std::string_view> names(known);
    for (size_t i = 0; i + 1 < map.items.size(); i += 2)
      if (std::ranges::find(names, map.items[i].text) == names.end())
        return lists_.Error(
            map.items[i].line,
            fmt::format("no key '{}' of {}; expected one of {}{}", Cleaned(map.items[i].text, 80), what,
                        fmt::join(names, ", "), DidYouMean(map.items[i].text, names)));
    return OkStatus();
  }

  SlurmLists lists_;
  SlurmFile result_;
};

}  // namespace

// Looks at the first characters alone: a list, whose first map begins with "topology:".
bool IsSlurmYaml(std::string_view text) {
  bool list = false;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::string_view rest = text.substr(at);
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++at;
    } else if (c == '#' || (!list && (c == '%' || rest.starts_with("---")))) {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '-' || c == '[') {
      list = true;
      ++at;
    } else if (list && (c == '{' || c == '"' || c == '\'')) {
      ++at;
    } else {
      constexpr std::string_view kKey = "topology";
      if (!list || !rest.starts_with(kKey)) return false;
      const size_t colon = rest.find_first_not_of("\"' \t", kKey.size());
      return colon != std::string_view::npos && rest[colon] == ':';
    }
  }
  return false;
}

StatusOr<SlurmFile> ReadSlurmYaml(std::string_view text, std::string_view file) {
  XCCL_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, file));
  return YamlReader(file).Read(root);
}

}  // namespace xccl
