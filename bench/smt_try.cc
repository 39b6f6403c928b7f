#include <cstdio>
#include <cstdlib>
#include <ctime>
#include "synth/smt_sum_prices.h"
#include "synth/smt_in_out.h"
#include "topologies/load.h"
using namespace xccl;
double Cpu() { return double(std::clock()) / CLOCKS_PER_SEC; }
int main(int argc, char** argv) {
  const Topology t = LoadTopology(argv[1], {}).value();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllreduce;
  for (int r = 0; r < t.num_ranks(); ++r) spec.ranks.push_back(Rank(r));
  const Collective c = Collective::Create(spec).value();
  const smt::Machine m = smt::MakeMachine(t);
  auto images = smt::ImagesOf(t, m, 64);
  smt::RoundsBound target{2 * (t.num_ranks() - 1), 0};
  for (auto& cap : m.capacities) target.denominator += cap.per_round;
  if (argc > 5) {
    if (atoi(argv[5]) == 3) {
      int C = atoi(argv[2]);
      smt::InOutQuestion q(m, images, C / (int)images.size(), atoi(argv[3]), atoi(argv[4]));
      double t0 = Cpu();
      auto a = q.Ask({4000000000, 120});
      printf("verdict %d sends %zu work %ld ask %.3f\n", (int)a->verdict, a->sends.size(), a->work, Cpu() - t0);
      return 0;
    }
    auto many = *smt::SumsOf(c.WithChunks(atoi(argv[2])), t.num_ranks());
    smt::SumQuestion q(m, many, images, static_cast<smt::Shape>(atoi(argv[5])), atoi(argv[3]), atoi(argv[4]));
    double t0 = Cpu();
    auto a = q.Ask(atoi(argv[4]), {4000000000, 120});
    printf("verdict %d sends %zu work %ld ask %.3f\n", (int)a->verdict, a->sends.size(), a->work, Cpu() - t0);
    return 0;
  }
  auto sums = *smt::SumsOf(c, t.num_ranks());
  for (int s = atoi(argv[2]); s <= atoi(argv[3]); ++s) {
    double t0 = Cpu();
    int64_t work = 0;
    auto res = smt::PriceSums(m, sums, images, s, target, {atoll(argv[4]), {}, {}}, work);
    printf("steps %d: %ld/%ld = %.6f optimal %d work %ld %.3f s plan %zu:", s, res.bound.numerator, res.bound.denominator, double(res.bound.numerator) / res.bound.denominator, res.optimal, work, Cpu() - t0, res.plan.size());
    for (auto& w : res.plan) printf(" %.4f", w.weight);
    printf("\n"); fflush(stdout);
    std::vector<std::vector<double>> load(s, std::vector<double>(m.capacities.size(), 0));
    for (auto& w : res.plan) for (auto& g : images) for (auto& x : w.pattern) for (int c : m.edges[g.edge[x.edge]].over) load[x.step][c] += w.weight / images.size() / m.capacities[c].per_round;
    for (int st = 0; st < s; ++st) { double mx = 0, mn = 1e9; for (double l : load[st]) mx = std::max(mx, l), mn = std::min(mn, l); printf("step %d rounds %.6f (least used %.6f)\n", st, mx, mn); }
    for (auto& w : res.plan) {
      std::vector<uint64_t> has(m.ranks);
      for (int r = 0; r < m.ranks; ++r) has[r] = 1ull << r;
      bool ok = true;
      for (int st = 0; st < s; ++st) {
        auto next = has;
        printf(" [%d]", st);
        for (auto& x : w.pattern) if (x.step == st) {
          auto& e = m.edges[x.edge];
          printf(" %d%s%d", e.from, x.adds ? "+" : "=", e.to);
          if (x.adds) { if (next[e.to] & has[e.from]) ok = false; next[e.to] |= has[e.from]; }
          else next[e.to] = has[e.from];
        }
        has = next;
      }
      for (auto h : has) ok &= h == (1ull << m.ranks) - 1;
      printf("  weight %f %s\n", w.weight, ok ? "ok" : "BAD");
    }
  }
}
