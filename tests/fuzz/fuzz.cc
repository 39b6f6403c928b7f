#include "tests/fuzz/fuzz.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "base/random.h"
#include "base/strings.h"
#include "tests/testing/mutate_text.h"

namespace xccl::testing {

void CheckRefusal(const Status& status) {
  XCCL_CHECK(status.code() == StatusCode::kInvalidInput || status.code() == StatusCode::kUsage);
  XCCL_CHECK(!status.message().empty());
}

const std::string& FileWith(std::string_view contents) {
  static const std::string path = [] {
    const char* directory = std::getenv("TEST_TMPDIR");
    return std::string(directory != nullptr ? directory : "/tmp") + "/xccl_fuzz_" + std::to_string(getpid());
  }();
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
  return path;
}

}  // namespace xccl::testing

// The names that libFuzzer asks for.
extern "C" {
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most) __attribute__((weak));

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  xccl::testing::FuzzOne({reinterpret_cast<const char*>(data), size});
  return 0;
}

// Half of the changes know XML and JSON.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  xccl::Random random(seed);
  const std::string changed =
      xccl::testing::MutateText({reinterpret_cast<const char*>(data), size}, random).substr(0, most);
  changed.copy(reinterpret_cast<char*>(data), changed.size());
  return changed.size();
}
}
