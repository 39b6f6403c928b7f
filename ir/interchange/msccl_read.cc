#include "ir/interchange/msccl_read.h"

#include <utility>

#include "ir/interchange/msccl_dialect.h"
#include "ir/interchange/msccl_file.h"

namespace xccl {

StatusOr<Imported> ReadMscclXml(std::string_view text, const ImportOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const msccl::File file, msccl::ReadFile(text, options.file));
  XCCL_ASSIGN_OR_RETURN(LoweredProgram lowered, msccl::ProveFile(file, options));
  return Imported{.format = "MSCCL XML",
                  .name = file.name,
                  .lowered = std::move(lowered),
                  .min_bytes = file.min_bytes,
                  .max_bytes = file.max_bytes,
                  .warnings = msccl::DialectWarnings(text, file, options.file)};
}

}  // namespace xccl
