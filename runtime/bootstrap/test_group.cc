#include "runtime/bootstrap/test_group.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "runtime/bootstrap/socket.h"

namespace xccl::testing {

uint16_t FreePort() {
  // The port is free on all addresses: another process may use an IPv4 port on an address that is not the
  // loopback.
  bootstrap::Address any = bootstrap::AddressV4(INADDR_ANY, 0);
  const StatusOr<OwnedFile> door = bootstrap::Listen(any);
  return door.ok() ? any.port() : uint16_t{0};
}

std::string FreeEndpoint(bool v6) { return (v6 ? "[::1]:" : "127.0.0.1:") + std::to_string(FreePort()); }

Placement PlaceOf(int32_t rank, int32_t ranks, const std::string& rendezvous) {
  Placement placement;
  placement.launcher = "test";
  placement.rank = Rank(rank);
  placement.ranks = ranks;
  placement.job = "test";
  placement.rendezvous = rendezvous;
  placement.token_seed = "a secret";
  return placement;
}

BootstrapOptions Patient() {
  BootstrapOptions options;
  options.time_limit = std::chrono::seconds(20);
  return options;
}

void RunGroup(int32_t ranks, const BootstrapOptions& options, const std::function<void(Bootstrap&)>& work,
              bool v6) {
  const std::string endpoint = FreeEndpoint(v6);
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      const StatusOr<std::unique_ptr<Bootstrap>> joined =
          Bootstrap::Join(PlaceOf(r, ranks, endpoint), options);
      EXPECT_TRUE(joined.ok()) << "rank " << r << ": " << joined.status().message();
      if (joined.ok()) work(**joined);
    });
  for (std::thread& thread : threads) thread.join();
}

std::vector<Status> JoinAll(const std::vector<Placement>& placements, const BootstrapOptions& options) {
  std::vector<Status> results(placements.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < placements.size(); ++i)
    threads.emplace_back([&, i] {
      const StatusOr<std::unique_ptr<Bootstrap>> joined = Bootstrap::Join(placements[i], options);
      results[i] = joined.status();
    });
  for (std::thread& thread : threads) thread.join();
  return results;
}

Child::Child(const std::function<int()>& work) : pid_(fork()) {
  if (pid_ == 0) _exit(work());
}

Child::~Child() {
  if (waited_) return;
  Signal(SIGKILL);
  Wait();
}

void Child::Signal(int number) const { kill(pid_, number); }

int Child::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  waited_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace xccl::testing
