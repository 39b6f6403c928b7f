#include "runtime/c_api/testing/fake_gpus.h"

#include <string>

#include "ir/numbers.h"
#include "ir/program.h"
#include "runtime/c_api/handles.h"
#include "runtime/cuda/backends.h"
#include "runtime/cuda/test_kernel.h"

namespace xccl::c_api {

void UseFakeDriver(cuda::FakeDriver& fake) {
  TheGpus().driver = [&fake]() -> StatusOr<const cuda::Driver*> { return &fake.table(); };
  TheGpus().adapt = [&fake](cuda::BackendOptions& options) {
    options.images = [](const std::string&, const ServedPlan&) -> StatusOr<cuda::KernelImages> {
      return cuda::KernelImages();
    };
    options.interpreter = [&fake](const Program& program) -> cuda::KernelImages {
      return
          [&fake, protocol = program.protocol](DataType type, ReduceOp op, int32_t) -> StatusOr<std::string> {
            cuda::AddHostKernel(fake, nullptr, type, op, protocol);
            return std::string("fake");
          };
    };
  };
}

}  // namespace xccl::c_api
