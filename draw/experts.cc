#include "draw/experts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "base/strings.h"
#include "draw/svg.h"

namespace xccl {
namespace {

using dispatch::ExpertPlan;

constexpr int32_t kMostTokensDrawn = 1024;  // the width of a line shows no finer share
constexpr size_t kMostDomains = 12;
constexpr int32_t kMostPictures = 8;
constexpr int32_t kRanksInRow = 8;
constexpr double kCell = 46, kRadius = 14, kMargin = 24, kHead = 62, kGap = 34;

// The number of rows of `home` that take each branch, by (depth, from, to).
using Flow = std::map<std::tuple<int32_t, int32_t, int32_t>, int64_t>;

Flow RowsOf(const ExpertPlan& plan, int32_t home, int32_t& tokens) {
  dispatch::Sizes sizes = plan.sizes;
  sizes.max_tokens = std::min(sizes.max_tokens, std::max(1, kMostTokensDrawn / sizes.ranks * 8));
  Random random(0);
  const dispatch::Routing routing = dispatch::DrawRouting({}, sizes, random);
  tokens = routing.TokensOf(home);
  dispatch::BranchFinder finder(plan);
  Flow flow;
  std::vector<int32_t> needs;
  for (int32_t t = 0; t < tokens; ++t) {
    dispatch::RanksOf(routing.ExpertsOf(routing.first_token[home] + t), sizes, needs);
    for (const dispatch::Branch& branch : finder.Find(t % plan.lanes, home, needs))
      ++flow[{branch.depth, branch.from, branch.to}];
  }
  return flow;
}

struct Point {
  double x, y;
};

class RoutesDrawer {
 public:
  RoutesDrawer(const ExpertPlan& plan, int32_t home) : plan_(plan), home_(home) { Place(); }

  std::string Draw() {
    int32_t tokens = 0;
    const Flow flow = RowsOf(plan_, home_, tokens);
    const std::string title =
        fmt::format("rows of rank {} on {}, route {}", home_, plan_.topology.name(), plan_.route);
    body_ += svg::Text(kMargin, 26, "start", 16, "#111111", title, "font-weight=\"bold\"");
    body_ += svg::Text(kMargin, 46, "start", 12, "#444444",
                       fmt::format("{}; a line is as wide as the share of its tokens that take it",
                                   Counted(plan_.lanes, "lane")));
    std::vector<double> of_depth;
    for (const auto& [branch, rows] : flow) {
      const auto [depth, from, to] = branch;
      of_depth.resize(std::max<size_t>(of_depth.size(), depth + 1));
      of_depth[depth] += static_cast<double>(rows);
      if (at_[from].x > 0 && at_[to].x > 0) DrawBranch(depth, from, to, static_cast<double>(rows) / tokens);
    }
    for (int32_t rank = 0; rank < plan_.sizes.ranks; ++rank)
      if (at_[rank].x > 0) DrawRank(rank);
    Legend(of_depth, tokens);
    return svg::Document(width_, height_, title, body_);
  }

 private:
  // Places the domains in rows of equal frames, the home's domain first.
  void Place() {
    std::vector<std::vector<int32_t>> members(*std::ranges::max_element(plan_.domains) + 1);
    for (int32_t rank = 0; rank < plan_.sizes.ranks; ++rank) members[plan_.domains[rank]].push_back(rank);
    std::rotate(members.begin(), members.begin() + plan_.domains[home_],
                members.begin() + plan_.domains[home_] + 1);
    hidden_ = members.size() - std::min(members.size(), kMostDomains);
    members.resize(members.size() - hidden_);
    size_t largest = 0;
    for (const std::vector<int32_t>& ranks : members) largest = std::max(largest, ranks.size());
    const auto across = static_cast<double>(std::min<size_t>(largest, kRanksInRow));
    const double wide = across * kCell + 16;
    const double high = std::ceil(static_cast<double>(largest) / kRanksInRow) * kCell + 28;
    const auto columns =
        static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(members.size()) * high / wide)));
    at_.assign(plan_.sizes.ranks, {0, 0});
    for (size_t d = 0; d < members.size(); ++d) {
      const size_t row = d / columns;
      const double x = kMargin + static_cast<double>(d % columns) * (wide + kGap);
      const double y = kHead + static_cast<double>(row) * (high + kGap);
      body_ += svg::Rect(x, y, wide, high, "rx=\"8\" fill=\"#f6f6f6\" stroke=\"#999999\"");
      body_ += svg::Text(x + 8, y + 16, "start", 11, "#444444",
                         fmt::format("domain {}", plan_.domains[members[d].front()]));
      for (size_t i = 0; i < members[d].size(); ++i) {
        const size_t line = i / kRanksInRow;
        at_[members[d][i]] = {x + 8 + (static_cast<double>(i % kRanksInRow) + 0.5) * kCell,
                              y + 20 + (static_cast<double>(line) + 0.5) * kCell};
      }
      width_ = std::max(width_, x + wide + kMargin);
      height_ = std::max(height_, y + high);
    }
    width_ = std::max(width_, 460.0);
  }

  void DrawRank(int32_t rank) {
    body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" stroke=\"#2e7d32\"/>\n",
                         svg::Number(at_[rank].x), svg::Number(at_[rank].y), svg::Number(kRadius),
                         rank == home_ ? "#8fd19a" : "#dff3e1");
    body_ += svg::Text(at_[rank].x, at_[rank].y + 4, "middle", 11, "#111111", fmt::format("{}", rank));
  }

  // Draws a branch as a bow from circle to circle. Lines between ranks in a row then do not hide each other.
  void DrawBranch(int32_t depth, int32_t from, int32_t to, double share) {
    const Point a = at_[from], b = at_[to];
    const double bow = a.y == b.y ? 0.22 * std::abs(b.x - a.x) + 6 : 0;
    body_ += fmt::format(
        "<path d=\"M{} {} Q{} {} {} {}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" opacity=\"0.75\">"
        "<title>{} to {}: {:.1f} % of the tokens</title></path>\n",
        svg::Number(a.x), svg::Number(a.y), svg::Number((a.x + b.x) / 2), svg::Number((a.y + b.y) / 2 - bow),
        svg::Number(b.x), svg::Number(b.y), svg::SeriesColour(depth), svg::Number(0.6 + 5 * share), from, to,
        100 * share);
  }

  void Legend(const std::vector<double>& of_depth, int32_t tokens) {
    double y = height_ + 24;
    for (size_t depth = 0; depth < of_depth.size(); ++depth, y += 18) {
      body_ += svg::Line(kMargin, y - 4, kMargin + 26, y - 4,
                         fmt::format("stroke=\"{}\" stroke-width=\"3\"", svg::SeriesColour(depth)));
      body_ += svg::Text(kMargin + 34, y, "start", 12, "#111111",
                         fmt::format("hop {}: {:.2f} rows a token", depth + 1, of_depth[depth] / tokens));
    }
    if (hidden_ > 0) {
      body_ += svg::Text(kMargin, y, "start", 12, "#444444",
                         fmt::format("{} more not drawn", Counted(static_cast<int64_t>(hidden_), "domain")));
      y += 18;
    }
    height_ = y;
  }

  const ExpertPlan& plan_;
  const int32_t home_;
  std::vector<Point> at_;  // by rank; x is 0 where it is not drawn
  size_t hidden_ = 0;      // number of domains that are not drawn
  double width_ = 0, height_ = 0;
  std::string body_;
};

}  // namespace

std::string RoutesSvg(const ExpertPlan& plan) { return RoutesDrawer(plan, 0).Draw(); }

std::string RoutesPage(const ExpertPlan& plan) {
  const std::string title = fmt::format("{} on {}", dispatch::ToString(plan.call), plan.topology.name());
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>body{{font:14px sans-serif;margin:24px}}dt{{float:left;width:11em;color:#444}}"
      "svg{{max-width:100%;height:auto}}</style></head>\n<body><h1>{0}</h1>\n<dl>",
      svg::Escaped(title));
  const auto line = [&](std::string_view name, const std::string& value) {
    page += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, svg::Escaped(value));
  };
  line("ranks", fmt::format("{}", plan.sizes.ranks));
  line("experts", fmt::format("{}, top-{}", plan.sizes.experts, plan.sizes.top_k));
  line("tokens of a rank", fmt::format("up to {}, rows of {}B", plan.sizes.max_tokens, plan.sizes.row_bytes));
  line("aim", std::string(dispatch::ToString(plan.aim)));
  line("route", fmt::format("{}, {}", plan.route, Counted(plan.lanes, "lane")));
  line("sums of combine", plan.sums == dispatch::Sums::kHome ? "at home alone, rounded once"
                                                             : "by every rank on the way, rounded at each");
  line("connections",
       fmt::format("{}, messages of up to {}", plan.hops.size(), Counted(plan.rows_per_message, "row")));
  page += "</dl>\n<p>combine takes the same lines the other way around.</p>\n";
  int32_t drawn = 0;
  for (int32_t home = 0; home < plan.sizes.ranks && drawn < kMostPictures; ++home) {
    if (plan.domains[home] != plan.domains[0]) continue;
    const std::string picture = RoutesDrawer(plan, home).Draw();
    page += picture.substr(picture.find("<svg"));
    ++drawn;
  }
  return page + "</body></html>\n";
}

}  // namespace xccl
