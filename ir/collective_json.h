// A Collective as JSON: the `collective` of a plan file, and user-defined collectives in files of their own.
// Format: docs/ir.md, Plan files and User-defined collectives.
#pragma once

#include <cstdint>
#include <string>

#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/status.h"
#include "ir/collective.h"

namespace xccl {

void WriteCollectiveJson(const Collective& collective, JsonWriter& writer);
// `num_ranks`: of the topology; members must be below it, and are all of them where `ranks` is missing. Parts
// are whole where `parts` is missing. Errors: kInvalidInput naming the key.
StatusOr<Collective> ReadCollectiveJson(const JsonValue& value, int32_t num_ranks);

// How the parts are cut into chunks alone, two keys of an object: `parts` and `weights`.
void WriteCutJson(const Collective& collective, JsonWriter& writer);
// The collective cut as the object says, or as it is where the object has no `parts`. Errors: kInvalidInput
// naming the key.
StatusOr<Collective> ReadCutJson(const JsonValue& value, const Collective& collective);

// A user-defined collective: a JSON file with the tables `pre` and `post`.
StatusOr<Collective> ReadCollectiveFile(const std::string& path, int32_t num_ranks);

}  // namespace xccl
