#include "draw/plot.h"

#include "base/strings.h"
#include "base/wrap.h"
#include "draw/svg.h"

namespace xccl::svg {

std::string PlotTitle(std::string_view title, std::string_view shown) {
  return Text(kPlot.margin, 32, "start", 18, kPlot.ink, title, "font-weight=\"bold\"") +
         Text(kPlot.margin, 52, "start", 12, kPlot.soft, shown);
}

std::string PlotNotes(const std::vector<std::string>& notes, double& y) {
  const auto letters = static_cast<size_t>((kPlot.width - 2 * kPlot.margin) / kPlot.letter);
  std::string text;
  for (const std::string& note : notes)
    for (const std::string& line : WrapWords(note, letters)) {
      text += Text(kPlot.margin, y, "start", 11, kPlot.soft, line);
      y += kPlot.label;
    }
  return text;
}

std::string FittedName(const std::string& name, size_t most_letters) {
  if (name.size() <= most_letters) return name;
  return name.substr(0, ValidUtf8Length(name.substr(0, most_letters - 2))) + "..";
}

}  // namespace xccl::svg
