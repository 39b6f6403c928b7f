// The prefix that a launcher or a log writes before each line of a program: mpirun's "[1,0]<stdout>:", srun's
// "0: ", kubectl's "[pod/NAME/CONTAINER] ", and time stamps, which differ from line to line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xccl {

// A line whose time stamps are known. A view: the line must outlive it.
struct StampedLine {
  explicit StampedLine(std::string_view of_log);
  std::string_view line;
  std::string text;         // the beginning of the line, with a sign in place of each time stamp
  std::vector<size_t> end;  // by byte of text: where in the line it ends
};

// The prefix of the lines of one program, whatever their time stamps are.
class LogPrefix {
 public:
  explicit LogPrefix(std::string_view prefix);  // as one line has it; blanks alone are none
  // The line behind the prefix; absent where it begins with another one.
  std::optional<std::string_view> Behind(const StampedLine& line) const;
  size_t length() const { return pattern_.size(); }
  bool operator==(const LogPrefix&) const = default;

 private:
  std::string pattern_;
};

}  // namespace xccl
