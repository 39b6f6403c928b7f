// Execution plans of MSCCL++: a plan that the reader accepts is proved, written, and read again.
#include <string_view>

#include "interchange/common/foreign.h"
#include "interchange/mscclpp/json.h"
#include "interchange/mscclpp/read.h"
#include "tests/fuzz/fuzz.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  const StatusOr<Imported> plain = ReadMscclppJson(text, {.file = "fuzz", .plain_switches = true});
  if (!plain.ok()) CheckRefusal(plain.status());
  const StatusOr<Imported> read = ReadMscclppJson(text, {.file = "fuzz"});
  if (!read.ok()) return CheckRefusal(read.status());
  const StatusOr<MscclppJson> written =
      WriteMscclppJson(read->lowered.program, read->lowered.collective, {.name = "written"});
  // A program that was read may need more ops than a plan has room for.
  if (!written.ok()) return CheckRefusal(written.status());
  const StatusOr<Imported> again = ReadMscclppJson(written->text, {.file = "written"});
  XCCL_CHECK(again.ok());
}

}  // namespace xccl::testing
