#include "base/files.h"

#include <fcntl.h>
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

TEST_F(Files, AFolderThatIsMissingIsAnError) {
  for (const char* name : {"none/f", "none/deep/f"}) {
    const Status missing = InvalidInput(Path(name) + ": cannot write: No such file or directory");
    EXPECT_EQ(CheckWritable(Path(name)), missing);
    EXPECT_EQ(WriteFileAtomically(Path(name), "x"), missing);
  }
  EXPECT_EQ(NumFiles(), 0u);
  EXPECT_EQ(WriteFileAtomically(Path("f"), "x"), OkStatus());
  const std::string below = Path("f") + "/g";
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

// Others who may write the folder plant links under the names that a temporary file could have.
TEST_F(Files, PlantedLinksAreNotFollowedByTemporaryFiles) {
  EXPECT_EQ(WriteFileAtomically(Path("precious"), "precious"), OkStatus());
  for (pid_t number = getpid() - 10; number < getpid() + 10; ++number)
    fs::create_symlink(Path("precious"), Path("f.tmp" + std::to_string(number)));
  const size_t before = NumFiles();
  EXPECT_EQ(CheckWritable(Path("f")), OkStatus());
  EXPECT_EQ(WriteFileAtomically(Path("f"), "new"), OkStatus());
  EXPECT_EQ(ReadFile(Path("precious")).value(), "precious");
  EXPECT_EQ(NumFiles(), before + 1);
}

TEST_F(Files, TemporaryNamesCannotBeGuessed) {
  const auto name_of_temporary = [&] {
    std::string name;
    EXPECT_EQ(WriteFileAtomically(Path("f"),
                                  [&](std::ostream&) {
                                    name = fs::directory_iterator(directory_)->path().filename().string();
                                    return InvalidInput("no more");
                                  }),
              InvalidInput("no more"));
    EXPECT_EQ(NumFiles(), 0u);
    return name;
  };
  const std::string first = name_of_temporary();
  EXPECT_EQ(first.substr(0, 5), "f.tmp");
  EXPECT_EQ(first.size(), 5u + 16u);
  EXPECT_NE(name_of_temporary(), first);
}

TEST_F(Files, LinksOfStrangersAreNotReplacedThrough) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a link of another user's";
  constexpr uid_t kStranger = 65534;
  fs::permissions(directory_, fs::perms::all);
  EXPECT_EQ(WriteFileAtomically(Path("precious"), "precious"), OkStatus());
  fs::create_symlink(Path("precious"), Path("f"));
  ASSERT_EQ(lchown(Path("f").c_str(), kStranger, kStranger), 0);
  const Status refused = InvalidInput(
      Path("f") +
      ": a link that user 65534 made; expected one of yours or of the folder's owner; hint: write "
      "to another name");
  EXPECT_EQ(CheckWritable(Path("f")), refused);
  EXPECT_EQ(WriteFileAtomically(Path("f"), "new"), refused);
  EXPECT_EQ(ReadFile(Path("precious")).value(), "precious");
}

TEST_F(Files, LongNamesAreWrittenOrRefusedBeforeTheWork) {
  const std::string longest = Path(std::string(255, 'a')), longer = Path(std::string(256, 'a'));
  EXPECT_EQ(CheckWritable(longest), OkStatus());
  EXPECT_EQ(WriteFileAtomically(longest, "x"), OkStatus());
  EXPECT_EQ(ReadFile(longest).value(), "x");
  EXPECT_EQ(CheckWritable(longer), InvalidInput(longer + ": cannot write: File name too long"));
}

TEST_F(Files, TheUmaskHoldsAndNothingIsWritableByAll) {
  const struct {
    mode_t umask, file, folder;
  } cases[] = {{0, 0664, 0775}, {022, 0644, 0755}, {002, 0664, 0775}, {077, 0600, 0700}};
  const auto mode_of = [](const std::string& path) {
    struct stat found = {};
    EXPECT_EQ(stat(path.c_str(), &found), 0);
    return found.st_mode & 07777U;
  };
  for (const auto& wanted : cases) {
    const std::string folder = Path(std::to_string(wanted.umask) + "/deep");
    const mode_t before = umask(wanted.umask);
    EXPECT_EQ(MakeFolders(folder + "/g/h"), OkStatus());
    EXPECT_EQ(WriteFileAtomically(folder + "/f", "x"), OkStatus());
    EXPECT_EQ(MakeFolders(folder + "/own", 0700), OkStatus());
    umask(before);
    EXPECT_EQ(mode_of(folder + "/f"), wanted.file);
    for (const std::string made : {"", "/g", "/g/h"}) EXPECT_EQ(mode_of(folder + made), wanted.folder);
    EXPECT_EQ(mode_of(folder + "/own"), 0700u);
    EXPECT_EQ(MakeFolders(folder + "/f/g"),
              InvalidInput(folder + "/f/g: cannot make the directory: Not a directory"));
  }
}

TEST_F(Files, SourcesThatDoNotEndAreRefused) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", Path("zero"));
  fs::create_symlink("/dev/stdin", Path("stdin"));
  EXPECT_EQ(ReadFile(Path("pipe")).status(), InvalidInput(Path("pipe") +
                                                          ": a pipe; expected a regular file; hint: "
                                                          "/dev/stdin < " +
                                                          Path("pipe")));
  EXPECT_EQ(ReadFile(Path("zero")).status(),
            InvalidInput(Path("zero") + ": a device; expected a regular file"));
  EXPECT_EQ(ReadFile("/dev/zero").status(), InvalidInput("/dev/zero: a device; expected a regular file"));
  EXPECT_EQ(WriteFileAtomically(Path("large"), ""), OkStatus());
  fs::resize_file(Path("large"), static_cast<uintmax_t>(kMostFileBytes) + 1);  // a hole; no disk is used
  EXPECT_EQ(ReadFile(Path("large")).status(),
            InvalidInput(Path("large") + ": more than 4294967296 bytes; expected at most so many"));
  EXPECT_EQ(WriteFileAtomically(Path("f"), "four"), OkStatus());
  EXPECT_EQ(ReadFile(Path("f"), 4).value(), "four");
  EXPECT_EQ(ReadFile(Path("f"), 3).status(),
            InvalidInput(Path("f") + ": more than 3 bytes; expected at most so many"));
}

// As "<(command)" of a shell gives it.
TEST_F(Files, DescriptorsOfThisProcessAreReadToTheirEnd) {
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "text", 4), 4);
  close(ends[1]);
  EXPECT_EQ(ReadFile("/dev/fd/" + std::to_string(ends[0])).value(), "text");
  close(ends[0]);
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  const std::string endless = "/proc/self/fd/" + std::to_string(zero);
  EXPECT_EQ(ReadFile(endless, 100'000).status(),
            InvalidInput(endless + ": more than 100000 bytes; expected at most so many"));
  close(zero);
}

TEST_F(Files, ProgramsThatOthersMayChangeAreNotTrusted) {
  const std::string file = Path("kernel.cu");
  const auto refused = [](const std::string& path, const std::string& seen, const std::string& hint) {
    return InvalidInput(path + ": " + seen +
                        "; expected that only you and root can change a program; hint: " + hint);
  };
  const gid_t other = geteuid() == 0 ? 65534 : getegid();
  const struct {
    mode_t file, folder;
    bool others_group = false;
    Status expected;
  } cases[] = {
      {0644, 0755, false, OkStatus()},
      {0600, 0700, true, OkStatus()},
      {0666, 0755, false, refused(file, "all users may write it", "chmod go-w " + file)},
      {0644, 0777, false,
       refused(directory_.string(), "all users may write it", "chmod go-w " + directory_.string())},
      {0644, 01777, false, OkStatus()},  // as /tmp: nobody replaces another's file there
      {0664, 0755, true,
       refused(file, "group " + std::to_string(other) + " may write it", "chmod go-w " + file)},
      {0644, 0775, true,
       refused(directory_.string(), "group " + std::to_string(other) + " may write it",
               "chmod go-w " + directory_.string())},
  };
  for (const auto& wanted : cases) {
    if (wanted.others_group && geteuid() != 0) continue;  // who is not root has no other group for sure
    EXPECT_EQ(WriteFileAtomically(file, "x"), OkStatus());
    const gid_t group = wanted.others_group ? other : static_cast<gid_t>(geteuid());
    if (geteuid() == 0) {
      ASSERT_EQ(chown(file.c_str(), geteuid(), group), 0);
      ASSERT_EQ(chown(directory_.c_str(), geteuid(), group), 0);
    }
    ASSERT_EQ(chmod(file.c_str(), wanted.file), 0);
    ASSERT_EQ(chmod(directory_.c_str(), wanted.folder), 0);
    EXPECT_EQ(CheckTrusted(file), wanted.expected) << std::oct << wanted.file << ' ' << wanted.folder;
  }
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  EXPECT_EQ(CheckTrusted(Path("none")), OkStatus());
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(file.c_str(), 65534, 0), 0);
  EXPECT_EQ(CheckTrusted(file), refused(file, "user 65534 owns it", "use a copy of your own"));
}

TEST_F(Files, AProgramsLinkIsHeldToTheFolderOfItsFile) {
  const std::string open_to_all = Path("open");
  ASSERT_EQ(MakeFolders(open_to_all), OkStatus());
  ASSERT_EQ(WriteFileAtomically(open_to_all + "/kernel.cu", "x"), OkStatus());
  ASSERT_EQ(chmod((open_to_all + "/kernel.cu").c_str(), 0644), 0);
  ASSERT_EQ(symlink((open_to_all + "/kernel.cu").c_str(), Path("link.cu").c_str()), 0);
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(open_to_all.c_str(), 0755), 0);
  EXPECT_EQ(CheckTrusted(Path("link.cu")), OkStatus());
  ASSERT_EQ(chmod(open_to_all.c_str(), 0777), 0);
  EXPECT_FALSE(CheckTrusted(Path("link.cu")).ok());
}

TEST_F(Files, AFileThatIsReplacedKeepsItsMode) {
  ASSERT_EQ(WriteFileAtomically(Path("secret"), "a"), OkStatus());
  ASSERT_EQ(chmod(Path("secret").c_str(), 0600), 0);
  ASSERT_EQ(symlink("secret", Path("link").c_str()), 0);
  ASSERT_EQ(symlink("link", Path("link of a link").c_str()), 0);
  ASSERT_EQ(WriteFileAtomically(Path("link of a link"), "b"), OkStatus());
  EXPECT_EQ(*ReadFile(Path("secret")), "b");
  struct stat found = {};
  ASSERT_EQ(lstat(Path("secret").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode, S_IFREG | 0600);
  ASSERT_EQ(chmod(Path("secret").c_str(), 0666), 0);
  ASSERT_EQ(WriteFileAtomically(Path("secret"), "c"), OkStatus());
  ASSERT_EQ(lstat(Path("secret").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode, S_IFREG | 0664);  // never writable by all
  ASSERT_EQ(symlink("loop", Path("loop").c_str()), 0);
  EXPECT_EQ(WriteFileAtomically(Path("loop"), "c").message(),
            Path("loop") + ": cannot write: Too many levels of symbolic links");
}

TEST_F(Files, UnreadableSources) {
  EXPECT_EQ(ReadFile("/proc/self/fd/../../../dev/zero").status().message(),
            "/proc/self/fd/../../../dev/zero: a device; expected a regular file");
  EXPECT_EQ(ReadFile(Path("none")).status(),
            InvalidInput(Path("none") + ": cannot read: No such file or directory"));
  EXPECT_EQ(ReadFile(directory_.string()).status(),
            InvalidInput(directory_.string() + ": cannot read: Is a directory"));
}

}  // namespace
}  // namespace xccl
