// An allreduce in C++, for 3 ranks or as many as the book has: one thread drives them all, as a program does
// that has a GPU a rank. Usage: allreduce_cpp BOOK [RANKS]
#include <xccl.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace {

void Check(xcclResult_t result) {
  if (result == xcclSuccess) return;
  throw std::runtime_error(std::string(xcclGetErrorString(result)) + ": " + xcclGetLastError(nullptr));
}

// Calls between its making and End() run together.
class Group {
 public:
  Group() { Check(xcclGroupStart()); }
  void End() { Check(xcclGroupEnd()); }
};

struct Destroy {
  void operator()(xcclComm_t comm) const { xcclCommDestroy(comm); }
};
using Comm = std::unique_ptr<std::remove_pointer_t<xcclComm_t>, Destroy>;

int Run(const std::string& book, int ranks) {
  constexpr std::size_t kCount = 1000000;
  std::vector<xcclComm_t> made(static_cast<std::size_t>(ranks));
  Check(xcclCommInitAll(made.data(), ranks, nullptr));
  const std::vector<Comm> comms(made.begin(), made.end());

  Group loads;
  for (const Comm& comm : comms) Check(xcclCommLoadPlanBook(comm.get(), book.c_str()));
  loads.End();

  std::vector<std::vector<float>> data;
  for (int r = 0; r < ranks; ++r) data.emplace_back(kCount, static_cast<float>(r + 1));
  Group calls;
  for (std::size_t r = 0; r < comms.size(); ++r)
    Check(
        xcclAllReduce(data[r].data(), data[r].data(), kCount, xcclFloat32, xcclSum, comms[r].get(), nullptr));
  calls.End();

  std::size_t wrong = 0;
  for (std::size_t r = 0; r < comms.size(); ++r) {
    Check(xcclCommSynchronize(comms[r].get()));
    for (const float sum : data[r]) wrong += sum != static_cast<float>(ranks * (ranks + 1) / 2);
  }
  std::printf("%d ranks, %zu elements, %zu wrong\n", ranks, kCount, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: allreduce_cpp BOOK [RANKS]\n");
    return 2;
  }
  return Run(argv[1], argc > 2 ? std::atoi(argv[2]) : 3);
} catch (const std::exception& error) {
  std::fprintf(stderr, "allreduce_cpp: %s\n", error.what());
  return 1;
}
