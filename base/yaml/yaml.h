// Reads YAML 1.1 (https://yaml.org/spec/1.1) into a tree of values that know their place in the file, for
// files of other tools: Slurm's topology.yaml, ASTRA-sim's network.yml. The value of every scalar is its
// text; a caller turns it into a number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl {

struct YamlNode {
  enum class Kind : uint8_t { kScalar, kList, kMap };
  Kind kind = Kind::kScalar;
  std::string text;             // of a scalar, without its quotes; empty: none is written
  std::vector<YamlNode> items;  // of a list; of a map its keys and values in turn
  int32_t line = 1, column = 1;

  // The value of a key of a map, or null. Of anything else than a map: null.
  const YamlNode* Find(std::string_view key) const;
};

// The tree of the only document in `text`; an empty scalar if there is none. `file` is the name shown in
// errors. Cost: linear.
// Errors: kInvalidInput "FILE:LINE:COLUMN: ..." for text that is not YAML, for nesting deeper than 64, for
// more than 16 MiB, for two documents, for a key that is no scalar or stands twice in a map, and for aliases,
// by which a small file may stand for a huge tree.
StatusOr<YamlNode> ParseYaml(std::string_view text, std::string_view file);

}  // namespace xccl
