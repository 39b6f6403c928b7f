// The command line: commands with their options. command_line.cc is the only file that knows the library that
// parses it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace xccl {

// The help of options and commands, as data.
struct OptionText {
  std::vector<std::string> names;   // "--size", "-s"; a positional argument has one name, "PLAN"
  std::string value;                // the placeholder of the value, "TEXT"; empty for a flag
  std::vector<std::string> values;  // all values that the option accepts, where they are few
  std::string help;
  bool is_positional = false, is_list = false;  // a list: may be given several times
};
struct CommandText {
  std::string name, summary, footer;
  std::vector<OptionText> options;  // in the order of help
};

// One option of a command; a view, valid as long as its CommandLine.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option Required(bool required = true);
  Option ShowDefault();                       // help says what the value is when the option is not given
  Option Between(int64_t low, int64_t high);  // for a number
  Option OneOf(const std::vector<std::string_view>& values);
  Option TypeName(const std::string& name);  // what help shows for the value
  Option Excludes(Option other);
  Option Needs(Option other);

 private:
  CLI::Option* option_;
};

// One subcommand; a view, valid as long as its CommandLine. Variables that options write must outlive the
// parsing.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // `name` as "--size,-s", or "PLAN" for a positional argument.
  // T: a string, int32_t or uint64_t; an optional string, int32_t or int64_t; or a list of strings. A number
  // is up to 2^31 in size, an uint64_t up to 2^63, unless Between says otherwise; a text is not empty.
  template <typename T>
  Option AddOption(const std::string& name, T& value, const std::string& help);
  Option AddFlag(const std::string& name, bool& value, const std::string& help);
  bool Has(const std::string& name) const;  // an option of this name
  // Requires: parsing is over, and an option of this name.
  bool IsGiven(const std::string& name) const;
  // The options that were given, "--size", in the order of help; no positional arguments. Requires: as above.
  std::vector<std::string> GivenFlags() const;
  // Help lists the options added from here on under this heading; "Options" is the usual one.
  void Heading(const std::string& heading);
  void Footer(const std::string& text);
  // Called after parsing, when this command was chosen.
  void WhenChosen(std::function<void()> chosen);

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& program, const std::string& version);
  ~CommandLine();

  Command AddCommand(const std::string& name, const std::string& summary);
  void ForEachCommand(const std::function<void(Command)>& visit);
  // In the order of help.
  std::vector<CommandText> Texts() const;
  std::string description() const;
  // The exit code, where the program ends here: after --help, after --version, or after a wrong command line.
  // The last is reported on standard error with the nearest known name.
  std::optional<int> Parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace xccl
