// PMI-1 against a process manager of this test, which answers as Hydra does.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "base/strings.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/test_group.h"
#include "runtime/host/owned_file.h"

namespace xccl {
namespace {

using std::chrono::milliseconds;

// Serves the ranks of a job, each at one end of a socket, until all have closed it.
class Manager {
 public:
  explicit Manager(size_t ranks) {
    for (size_t r = 0; r < ranks; ++r) {
      std::array<int, 2> ends = {};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
      ours_.emplace_back(ends[0]);
      theirs_.emplace_back(ends[1]);
    }
  }
  int file(size_t rank) const { return theirs_[rank].get(); }
  void Run() {
    theirs_.clear();
    std::vector<std::string> unread(ours_.size());
    std::set<size_t> open;
    for (size_t r = 0; r < ours_.size(); ++r) open.insert(r);
    while (!open.empty())
      for (size_t r = 0; r < ours_.size(); ++r) {
        if (open.count(r) == 0) continue;
        std::array<char, 4096> bytes;
        const ssize_t got = recv(ours_[r].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got == 0) open.erase(r);
        if (got < 0) usleep(1000);
        if (got <= 0) continue;
        unread[r].append(bytes.data(), static_cast<size_t>(got));
        for (size_t end; (end = unread[r].find('\n')) != std::string::npos; unread[r].erase(0, end + 1))
          Answer(r, unread[r].substr(0, end));
      }
  }
  int finalized = 0;

 private:
  void Say(size_t rank, const std::string& line) {
    EXPECT_GT(send(ours_[rank].get(), (line + "\n").data(), line.size() + 1, MSG_NOSIGNAL), 0);
  }
  void Answer(size_t rank, const std::string& line) {
    std::map<std::string, std::string> given;
    for (const std::string& pair : Split(line, ' '))
      given[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
    const std::string& command = given["cmd"];
    if (command == "init") Say(rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    if (command == "get_my_kvsname") Say(rank, "cmd=my_kvsname kvsname=kvs_1_0");
    if (command == "put") values_[given["key"]] = given["value"];
    if (command == "put") Say(rank, "cmd=put_result rc=0 msg=success");
    if (command == "get")
      Say(rank, values_.count(given["key"]) == 0
                    ? "cmd=get_result rc=-1 msg=key_not_found"
                    : "cmd=get_result rc=0 msg=success value=" + values_[given["key"]]);
    if (command == "finalize") Say(rank, "cmd=finalize_ack");
    if (command == "finalize") ++finalized;
    if (command == "barrier_in" && ++waiting_ == ours_.size()) {
      for (size_t r = 0; r < ours_.size(); ++r) Say(r, "cmd=barrier_out");
      waiting_ = 0;
    }
  }

  std::vector<OwnedFile> ours_, theirs_;
  std::map<std::string, std::string> values_;
  size_t waiting_ = 0;
};

StatusOr<Placement> PlacementOf(size_t rank, size_t ranks, int file) {
  return FindPlacement([&](std::string_view name) -> std::optional<std::string> {
    if (name == "PMI_RANK") return std::to_string(rank);
    if (name == "PMI_SIZE") return std::to_string(ranks);
    if (name == "PMI_FD") return std::to_string(file);
    return std::nullopt;
  });
}

// Meets twice in one process: keys are not written twice, and the talk with the manager begins once.
int MeetTwice(size_t rank, size_t ranks, int file) {
  const StatusOr<Placement> placement = PlacementOf(rank, ranks, file);
  if (!placement.ok()) return 1;
  for (int round = 0; round < 2; ++round) {
    const auto group = Bootstrap::Join(*placement, testing::Patient());
    if (!group.ok()) {
      fmt::print(stderr, "rank {}: {}\n", rank, group.status().message());
      return 2;
    }
    if ((*group)->ranks() != static_cast<int32_t>(ranks)) return 3;
    if (!(*group)->Barrier(std::chrono::seconds(20)).ok()) return 4;
  }
  return 0;
}

TEST(Pmi, RanksMeetByTheValuesOfTheirManager) {
  Manager manager(3);
  std::vector<std::unique_ptr<testing::Child>> children;
  for (size_t r = 0; r < 3; ++r)
    children.push_back(std::make_unique<testing::Child>([&, r]() -> int {
      const int result = MeetTwice(r, 3, manager.file(r));
      // A fork's exit does not end the talk of its parent.
      const pid_t fork_of_it = fork();
      if (fork_of_it == 0) std::exit(0);
      int ending = 0;
      if (waitpid(fork_of_it, &ending, 0) != fork_of_it || ending != 0) _exit(9);
      std::exit(result);  // with what is done at the exit: the talk is ended
    }));
  manager.Run();
  for (const auto& child : children) EXPECT_EQ(child->Wait(), 0);
  EXPECT_EQ(manager.finalized, 3);
}

TEST(Pmi, AManagerThatHasEndedIsNamed) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const OwnedFile ours(ends[1]);
  { const OwnedFile theirs(ends[0]); }
  const StatusOr<Placement> placement = PlacementOf(1, 2, ours.get());
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(Bootstrap::Join(*placement, testing::Patient()).status().message(),
            "PMI: the process manager cannot be reached: Broken pipe");
}

}  // namespace
}  // namespace xccl
