#include "runtime/c_api/testing/processes.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace xccl {
namespace {

// The test's own process makes no id: it would then have a thread, and a process with threads that forks is
// no place to start others.
bool ShareId(int rank, Shared& shared) {
  if (rank == 0) {
    if (xcclGetUniqueId(&shared.id) != xcclSuccess) return false;
    shared.made = true;
  }
  while (!shared.made) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return true;
}

}  // namespace

void InProcesses(int ranks, const Body& body, unsigned seconds) {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Shared& shared = *new (memory) Shared;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(seconds);
      std::quick_exit(ShareId(rank, shared) && body(rank, shared) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int ending = 0;
    ASSERT_EQ(waitpid(children[static_cast<size_t>(rank)], &ending, 0), children[static_cast<size_t>(rank)]);
    EXPECT_TRUE(WIFEXITED(ending) && WEXITSTATUS(ending) == 0) << "rank " << rank << ": " << ending;
  }
  munmap(memory, sizeof(Shared));
}

bool Is(const std::string& seen, const std::string& expected) {
  if (seen == expected) return true;
  fprintf(stderr, "%s\nexpected %s\n", seen.c_str(), expected.c_str());
  return false;
}

bool Is(xcclResult_t seen, xcclResult_t expected) {
  if (seen == expected) return true;
  fprintf(stderr, "%d (%s); expected %d\n", seen, xcclGetLastError(nullptr), expected);
  return false;
}

}  // namespace xccl
