// What a launcher or a log writes before each line of a program: mpirun's "[1,0]<stdout>:", srun's "0: ",
// kubectl's "[pod/NAME/CONTAINER] ", and time stamps, which differ from line to line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace xccl {

// The prefix of the lines of one program, with a sign in place of each time stamp.
class LogPrefix {
 public:
  explicit LogPrefix(std::string_view prefix);  // as one line has it; blanks alone are none
  // The line behind the prefix; absent where it begins with another one.
  std::optional<std::string_view> Behind(std::string_view line) const;
  size_t length() const { return pattern_.size(); }
  bool operator==(const LogPrefix&) const = default;

 private:
  std::string pattern_;
};

}  // namespace xccl
