// JSON of a Collective, in plan files and in files of user-defined collectives. Format: docs/ir.md, Plan
// files and User-defined collectives.
#pragma once

#include <cstdint>
#include <string>

#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/status.h"
#include "ir/collective.h"

namespace xccl {

inline constexpr int64_t kMostWeight = int64_t{1} << 40;  // of a chunk, or of a part of a user's collective

void WriteCollectiveJson(const Collective& collective, JsonWriter& writer);
// `num_ranks` is the topology's. Members must be below it; if `ranks` is missing, all ranks are members. If
// `parts` is missing, each part is one chunk. Errors: kInvalidInput naming the key.
StatusOr<Collective> ReadCollectiveJson(const JsonValue& value, int32_t num_ranks);

// Writes only how the parts are cut into chunks: the keys `parts` and `weights` of an object.
void WriteCutJson(const Collective& collective, JsonWriter& writer);
// Returns the collective with its parts cut as the object says, or unchanged if the object has no `parts`.
// Errors: kInvalidInput naming the key.
StatusOr<Collective> ReadCutJson(const JsonValue& value, const Collective& collective);

// Reads a user-defined collective: a JSON file with the tables `pre` and `post`.
StatusOr<Collective> ReadCollectiveFile(const std::string& path, int32_t num_ranks);

}  // namespace xccl
