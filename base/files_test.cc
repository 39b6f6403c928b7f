#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/standard_streams.h"

namespace xccl {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  size_t NumFiles() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  fs::path directory_;
};

TEST_F(Files, ANameThatIsTooLongIsNotThereAndThrowsNothing) {
  const std::string name(300, 'a');
  EXPECT_FALSE(PathExists(name));
  EXPECT_FALSE(IsDirectory(name));
  EXPECT_EQ(ReadFile(name).status(), InvalidInput(name + ": cannot read: File name too long"));
  EXPECT_TRUE(PathExists(directory_.string()));
  EXPECT_TRUE(IsDirectory(directory_.string()));
  EXPECT_FALSE(PathExists(Path("f")));
}

TEST_F(Files, ReadsWhatItWrites) {
  const std::string contents("a\0b\r\n", 5);
  EXPECT_EQ(WriteFileAtomically(Path("f"), contents), OkStatus());
  EXPECT_EQ(ReadFile(Path("f")).value(), contents);
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(Files, ReplacesAnOldFile) {
  EXPECT_EQ(WriteFileAtomically(Path("f"), "a long old text"), OkStatus());
  EXPECT_EQ(WriteFileAtomically(Path("f"), "new"), OkStatus());
  EXPECT_EQ(ReadFile(Path("f")).value(), "new");
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(Files, AFailedWriteLeavesTheOldFile) {
  EXPECT_EQ(WriteFileAtomically(Path("f"), "old"), OkStatus());
  const auto fail = [](std::ostream& out) {
    out << "half";
    return InvalidInput("no more");
  };
  EXPECT_EQ(WriteFileAtomically(Path("f"), fail), InvalidInput("no more"));
  EXPECT_EQ(ReadFile(Path("f")).value(), "old");
  EXPECT_EQ(WriteFileAtomically(Path("g"), fail), InvalidInput("no more"));
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(Files, CheckingLeavesEverythingAsItIs) {
  EXPECT_EQ(WriteFileAtomically(Path("f"), "old"), OkStatus());
  EXPECT_EQ(CheckWritable(Path("f")), OkStatus());
  EXPECT_EQ(CheckWritable(Path("g")), OkStatus());
  EXPECT_EQ(CheckWritable("/dev/null"), OkStatus());
  EXPECT_EQ(ReadFile(Path("f")).value(), "old");
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(Files, FoldersThatAreMissingAreMadeWhenTheFileIsWritten) {
  EXPECT_EQ(CheckWritable(Path("none/deep/f")), OkStatus());
  EXPECT_EQ(NumFiles(), 0u);
  EXPECT_EQ(WriteFileAtomically(Path("none/deep/f"), "x"), OkStatus());
  EXPECT_EQ(ReadFile(Path("none/deep/f")).value(), "x");
  const std::string below = Path("none/deep/f") + "/g";
  EXPECT_EQ(CheckWritable(below), InvalidInput(below + ": cannot write: Not a directory"));
  EXPECT_EQ(WriteFileAtomically(below, "x"), InvalidInput(below + ": cannot write: Not a directory"));
}

TEST_F(Files, UnwritableTargets) {
  EXPECT_EQ(CheckWritable(directory_.string()),
            InvalidInput(directory_.string() + ": cannot write: Is a directory"));
  EXPECT_EQ(WriteFileAtomically(directory_.string(), "x"),
            InvalidInput(directory_.string() + ": cannot write: Is a directory"));
  EXPECT_EQ(WriteFileAtomically("/dev/full", "x"),
            InvalidInput("/dev/full: cannot write: No space left on device"));
  EXPECT_EQ(NumFiles(), 0u);
}

TEST_F(Files, AReadOnlyFolderIsLeftAlone) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::permissions(directory_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(WriteFileAtomically(Path("f"), "x"),
            InvalidInput(Path("f") + ": cannot write: Permission denied"));
  fs::permissions(directory_, fs::perms::owner_all);
  EXPECT_EQ(NumFiles(), 0u);
}

TEST_F(Files, DevicesAreWrittenStraight) {
  EXPECT_EQ(WriteFileAtomically("/dev/null", "x"), OkStatus());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, SymbolicLinksStayLinks) {
  EXPECT_EQ(WriteFileAtomically(Path("f"), "old"), OkStatus());
  fs::create_symlink(Path("f"), Path("link"));
  EXPECT_EQ(WriteFileAtomically(Path("link"), "new"), OkStatus());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(ReadFile(Path("f")).value(), "new");
}

TEST_F(Files, MarksOfTexts) {
  EXPECT_EQ(WriteFileAtomically(Path("f"),
                                "\xEF\xBB\xBF"
                                "1,2\n"),
            OkStatus());
  EXPECT_EQ(ReadTextFile(Path("f")).value(), "1,2\n");
  EXPECT_EQ(ReadFile(Path("f")).value(),
            "\xEF\xBB\xBF"
            "1,2\n");
  for (const std::string_view mark : {"\xFF\xFE", "\xFE\xFF"}) {
    EXPECT_EQ(WriteFileAtomically(Path("f"), mark), OkStatus());
    EXPECT_EQ(ReadTextFile(Path("f")).status(),
              InvalidInput(Path("f") + ":1:1: begins with a mark of UTF-16; expected UTF-8"));
  }
  EXPECT_EQ(WriteFileAtomically(Path("f"), "\xEF\xBB"), OkStatus());
  EXPECT_EQ(ReadTextFile(Path("f")).value(), "\xEF\xBB");
}

// As "ulimit -f" sets it, which would end the process by a signal.
TEST_F(Files, AFileBeyondItsLimitFailsAndLeavesTheOldOne) {
  EXPECT_EQ(WriteFileAtomically(Path("f"), "old"), OkStatus());
  const pid_t child = fork();
  if (child == 0) {
    PrepareStandardStreams();
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Status status = WriteFileAtomically(Path("f"), std::string(100'000, 'x'));
    _exit(status == InvalidInput(Path("f") + ": cannot write: File too large") ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ReadFile(Path("f")).value(), "old");
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(Files, UnreadableSources) {
  EXPECT_EQ(ReadFile(Path("none")).status(),
            InvalidInput(Path("none") + ": cannot read: No such file or directory"));
  EXPECT_EQ(ReadFile(directory_.string()).status(),
            InvalidInput(directory_.string() + ": cannot read: Is a directory"));
}

}  // namespace
}  // namespace xccl
