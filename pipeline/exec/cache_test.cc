#include "pipeline/exec/cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"

namespace xccl {
namespace {

namespace fs = std::filesystem;

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
  }
  CacheRequest Request(std::function<Status(const std::string&)> make) const {
    CacheRequest request;
    request.folder = folder_;
    request.key = "key";
    request.make = std::move(make);
    return request;
  }
  // Writes ten files, slowly enough for a kill to come between them.
  static Status WriteTen(const std::string& directory) {
    for (int i = 0; i < 10; ++i) {
      std::ofstream(directory + "/" + std::to_string(i)) << "contents " << i;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return OkStatus();
  }
  static void ExpectWhole(const StatusOr<std::string>& entry) {
    ASSERT_TRUE(entry.ok()) << entry.status().message();
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(*ReadFile(*entry + "/" + std::to_string(i)), "contents " + std::to_string(i));
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
      names.insert(entry.path().filename().string());
    return names;
  }
  std::string Hash() const { return fs::path(CachePathOf(folder_, "key")).filename().string(); }

  std::string folder_;
};

Status MustNotMake(const std::string&) { return SystemError("made again"); }

TEST_F(Cache, IsMadeOnceAndFoundThen) {
  EXPECT_FALSE(FindInCache(folder_, "key"));
  ExpectWhole(FindOrMake(Request(WriteTen)));
  ExpectWhole(FindOrMake(Request(MustNotMake)));
  EXPECT_TRUE(FindInCache(folder_, "key"));
  EXPECT_FALSE(FindInCache(folder_, "another key"));
  EXPECT_EQ(Names(), (std::set<std::string>{Hash(), Hash() + ".lock"}));
}

TEST_F(Cache, ProcessesAtOnceMakeItOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const StatusOr<std::string> entry = FindOrMake(Request([](const std::string& directory) {
      std::ofstream(directory + "/../made", std::ios::app) << "x";
      return WriteTen(directory);
    }));
    _exit(entry.ok() && FindInCache(*entry + "/..", "key") ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(*ReadFile(folder_ + "/made"), "x");
}

TEST_F(Cache, KilledMakersLeaveNothingThatBreaksTheNext) {
  for (int i = 0; i < 40; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(FindOrMake(Request(WriteTen)).ok() ? 0 : 1);
    std::this_thread::sleep_for(std::chrono::microseconds(i * 700));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    if (i % 8 == 7) {
      ExpectWhole(FindOrMake(Request(WriteTen)));
      fs::remove_all(CachePathOf(folder_, "key"));
    }
  }
  ExpectWhole(FindOrMake(Request(WriteTen)));
  EXPECT_EQ(Names(), (std::set<std::string>{Hash(), Hash() + ".lock"}));
}

TEST_F(Cache, LeftoversOfOtherEntriesAreRemovedUnlessTheyAreBeingMade) {
  fs::create_directories(folder_ + "/0123456789abcdef.tmp-dead00");
  CacheRequest other = Request([&](const std::string& directory) {
    ExpectWhole(FindOrMake(Request(WriteTen)));
    EXPECT_TRUE(fs::exists(directory));
    return WriteTen(directory);
  });
  other.key = "other";
  ExpectWhole(FindOrMake(other));
  for (const std::string& name : Names()) EXPECT_EQ(name.find(".tmp-"), name.npos) << name;
}

TEST_F(Cache, ADamagedEntryIsMadeAgain) {
  const std::string entry = *FindOrMake(Request(WriteTen));
  for (const char* const damage : {"other", "short", "missing", "more", "manifest", "key", "file"}) {
    const std::string what = damage;
    if (what == "other") std::ofstream(entry + "/3") << "contents X";
    if (what == "short") fs::resize_file(entry + "/3", 0);
    if (what == "missing") fs::remove(entry + "/3");
    if (what == "more") std::ofstream(entry + "/x") << "x";
    if (what == "manifest") fs::remove(entry + "/manifest");
    if (what == "key") std::ofstream(entry + "/key") << "another";
    if (what == "file") {
      fs::remove_all(entry);
      std::ofstream(entry) << "a file";
    }
    EXPECT_FALSE(FindInCache(folder_, "key")) << damage;
    ExpectWhole(FindOrMake(Request(WriteTen)));
  }
  EXPECT_EQ(Names(), (std::set<std::string>{Hash(), Hash() + ".lock"}));
}

TEST_F(Cache, AFailureIsOfAllThatWaitForIt) {
  const auto fail = [](const std::string& directory) {
    std::ofstream(directory + "/0") << "half";
    return InvalidInput("the disc is full");
  };
  EXPECT_EQ(FindOrMake(Request(fail)).status().message(), "the disc is full");
  EXPECT_EQ(FindOrMake(Request(MustNotMake)).status().message(), "the disc is full");
  EXPECT_EQ(CheckCanMake(folder_, "key").message(), "the disc is full");
  EXPECT_EQ(CheckCanMake(folder_, "another key"), OkStatus());
  fs::remove(CachePathOf(folder_, "another key") + ".lock");
  EXPECT_EQ(Names(), (std::set<std::string>{Hash() + ".lock", Hash() + ".failed"}));
  // Later it is tried again.
  fs::last_write_time(folder_ + "/" + Hash() + ".failed",
                      fs::file_time_type::clock::now() - std::chrono::minutes(1));
  EXPECT_EQ(CheckCanMake(folder_, "key"), OkStatus());
  ExpectWhole(FindOrMake(Request(WriteTen)));
  EXPECT_EQ(Names(), (std::set<std::string>{Hash(), Hash() + ".lock"}));
}

TEST_F(Cache, AWaitIsSaidAndHasAnEnd) {
  int began[2];
  ASSERT_EQ(pipe(began), 0);
  const pid_t child = fork();
  if (child == 0) {
    static_cast<void>(FindOrMake(Request([&](const std::string&) {
      const bool told = write(began[1], "x", 1) == 1;
      pause();
      return told ? OkStatus() : SystemError("");
    })));
    _exit(0);
  }
  char x = 0;
  ASSERT_EQ(read(began[0], &x, 1), 1);
  CacheRequest request = Request(MustNotMake);
  int said = 0;
  request.on_wait = [&] { ++said; };
  request.wait_s = 1.2;
  EXPECT_EQ(FindOrMake(request).status().message(),
            "another process has been making " + CachePathOf(folder_, "key") + " for 1 s");
  EXPECT_EQ(said, 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ExpectWhole(FindOrMake(Request(WriteTen)));  // its lock went with it
}

TEST_F(Cache, AFolderThatCannotBeWritten) {
  std::ofstream(folder_) << "a file";
  CacheRequest request = Request(MustNotMake);
  request.folder = folder_ + "/xccl";
  EXPECT_EQ(FindOrMake(request).status().message(),
            request.folder + ": cannot make the directory: Not a directory");
  EXPECT_EQ(CheckCanMake(request.folder, "key"), FindOrMake(request).status());
  fs::remove(folder_);
  // An entry that is there needs no writing.
  ExpectWhole(FindOrMake(Request(WriteTen)));
  fs::remove(folder_ + "/" + Hash() + ".lock");
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  ExpectWhole(FindOrMake(Request(MustNotMake)));
  if (geteuid() != 0) {  // whom no permission stops
    CacheRequest other = Request(MustNotMake);
    other.key = "other";
    EXPECT_EQ(FindOrMake(other).status().message(),
              CachePathOf(folder_, "other") + ".lock: cannot write: Permission denied");
  }
  fs::permissions(folder_, fs::perms::owner_all);
}

}  // namespace
}  // namespace xccl
