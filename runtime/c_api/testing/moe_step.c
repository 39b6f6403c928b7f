/* An expert multiplies a row by its number and one. Rows are 12 floats and a scale of 4 beside them; all
 * numbers are small and whole, so that sums are exact. */
#include "runtime/c_api/testing/moe_step.h"

#include <stdio.h>
#include <string.h>

#define RANKS 4
#define EXPERTS 8
#define TOP_K 2
#define TOKENS 6
#define ROWS (RANKS * TOKENS)
#define ENTRIES (ROWS * TOP_K)
#define WIDTH 12

#define CALL(call)                                                                         \
  do {                                                                                     \
    const xcclResult_t result = (call);                                                    \
    if (result != xcclSuccess) {                                                           \
      fprintf(stderr, "line %d: %d: %s\n", __LINE__, (int)result, xcclGetLastError(NULL)); \
      return __LINE__;                                                                     \
    }                                                                                      \
  } while (0)
#define EXPECT(condition)                                              \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "line %d: expected %s\n", __LINE__, #condition); \
      return __LINE__;                                                 \
    }                                                                  \
  } while (0)

static int Tokens(int rank) { return rank == 2 ? 0 : TOKENS - rank; }
static int Choice(int rank, int token, int k, int step) {
  if ((rank + token + k) % 5 == 0) return -1;
  return (rank * 3 + token + step + k * 3) % EXPERTS;
}
static float Weight(int rank, int token, int k) { return (rank + token + k) % 2 == 0 ? 0.5f : 1.0f; }
static float Value(int rank, int token, int i) { return (float)((rank * 5 + token * 3 + i) % 4); }

static void Fill(int rank, long long* choices, float* weights, float* rows, float* scales, int step) {
  int token, k, i;
  for (token = 0; token < Tokens(rank); ++token) {
    for (k = 0; k < TOP_K; ++k) {
      choices[token * TOP_K + k] = Choice(rank, token, k, step);
      weights[token * TOP_K + k] = Weight(rank, token, k);
    }
    for (i = 0; i < WIDTH; ++i) rows[token * WIDTH + i] = Value(rank, token, i);
    for (i = 0; i < 4; ++i) scales[token * 4 + i] = (float)(rank * 100 + token);
  }
}

static int RunStep(xcclComm_t comm, xcclExperts_t experts, int step) {
  static const int local = EXPERTS / RANKS;
  int rank = 0, rows_here = 0, of_rank[RANKS], of_expert[EXPERTS / RANKS], first[EXPERTS / RANKS + 1];
  int homes[ROWS], tokens[ROWS], local_experts[ROWS * TOP_K], row_of_entry[ENTRIES];
  int row, e, entry, i, k, token;
  long long choices[TOKENS * TOP_K];
  float weights[TOKENS * TOP_K], rows[TOKENS * WIDTH], scales[TOKENS * 4];
  float received[ROWS * WIDTH], received_scales[ROWS * 4], outputs[ENTRIES * WIDTH], sums[TOKENS * WIDTH];
  float row_weights[ROWS * TOP_K], entry_weights[ENTRIES];
  xcclDispatchIn_t in = XCCL_DISPATCH_IN_INITIALIZER;
  xcclDispatchOut_t out = XCCL_DISPATCH_OUT_INITIALIZER;
  CALL(xcclCommUserRank(comm, &rank));
  Fill(rank, choices, weights, rows, scales, step);

  in.rows = rows;
  in.rowBytes = WIDTH * sizeof(float);
  in.scales = scales;
  in.scaleBytes = 4 * sizeof(float);
  in.tokens = (size_t)Tokens(rank);
  in.choices = choices;
  in.weights = weights;
  out.rows = received;
  out.scales = received_scales;
  out.maxRows = ROWS;
  out.numRows = &rows_here;
  out.rowsOfRank = of_rank;
  out.experts = local_experts;
  out.weights = row_weights;
  out.homes = homes;
  out.tokens = tokens;
  out.rowsOfExpert = of_expert;
  out.firstOfExpert = first;
  out.maxEntries = ENTRIES;
  out.rowOfEntry = row_of_entry;
  out.weightOfEntry = entry_weights;
  CALL(xcclDispatch(&in, &out, experts, NULL));
  CALL(xcclCommSynchronize(comm));

  for (row = 0; row < rows_here; ++row) {
    EXPECT(row == 0 || homes[row - 1] < homes[row] ||
           (homes[row - 1] == homes[row] && tokens[row - 1] < tokens[row]));
    for (i = 0; i < WIDTH; ++i) EXPECT(received[row * WIDTH + i] == Value(homes[row], tokens[row], i));
    EXPECT(received_scales[row * 4 + 3] == (float)(homes[row] * 100 + tokens[row]));
    --of_rank[homes[row]];
    for (k = 0; k < TOP_K; ++k) {
      const int chosen = Choice(homes[row], tokens[row], k, step);
      const int here = chosen >= 0 && chosen / local == rank;
      EXPECT(local_experts[row * TOP_K + k] == (here ? chosen % local : -1));
      EXPECT(row_weights[row * TOP_K + k] == (here ? Weight(homes[row], tokens[row], k) : 0));
    }
  }
  for (i = 0; i < RANKS; ++i) EXPECT(of_rank[i] == 0);

  /* Forward: y = sum of weight * (expert + 1) * x. */
  for (e = 0; e < local; ++e) {
    EXPECT(first[e + 1] - first[e] == of_expert[e]);
    for (entry = first[e]; entry < first[e + 1]; ++entry)
      for (i = 0; i < WIDTH; ++i)
        outputs[entry * WIDTH + i] =
            (float)(rank * local + e + 1) * received[row_of_entry[entry] * WIDTH + i];
  }
  memset(sums, 0x55, sizeof sums);
  CALL(xcclCombine(outputs, sums, WIDTH, xcclFloat32, xcclWeightedEntries, experts, NULL));
  CALL(xcclCommSynchronize(comm));
  for (token = 0; token < Tokens(rank); ++token)
    for (i = 0; i < WIDTH; ++i) {
      float sum = 0;
      for (k = 0; k < TOP_K; ++k)
        if (Choice(rank, token, k, step) >= 0)
          sum += Weight(rank, token, k) * (float)(Choice(rank, token, k, step) + 1) * Value(rank, token, i);
      EXPECT(sums[token * WIDTH + i] == sum);
    }

  /* Backward of combine: dispatch on the same ways, here with y as its gradient. */
  in.rows = sums;
  in.scaleBytes = 16; /* 48 + 16 bytes, as before */
  in.choices = NULL;
  in.weights = NULL;
  in.sameChoices = 1;
  CALL(xcclDispatch(&in, &out, experts, NULL));
  CALL(xcclCommSynchronize(comm));
  /* Backward of dispatch: combine on the same ways; a rank adds up its experts before. */
  memset(outputs, 0, sizeof outputs);
  for (row = 0; row < rows_here; ++row)
    for (k = 0; k < TOP_K; ++k)
      if (local_experts[row * TOP_K + k] >= 0)
        for (i = 0; i < WIDTH; ++i)
          outputs[row * WIDTH + i] += row_weights[row * TOP_K + k] *
                                      (float)(rank * local + local_experts[row * TOP_K + k] + 1) *
                                      received[row * WIDTH + i];
  CALL(xcclCombine(outputs, rows, WIDTH, xcclFloat32, xcclRows, experts, NULL));
  CALL(xcclCommSynchronize(comm));
  for (token = 0; token < Tokens(rank); ++token)
    for (i = 0; i < WIDTH; ++i) {
      float scale = 0;
      for (k = 0; k < TOP_K; ++k)
        if (Choice(rank, token, k, step) >= 0)
          scale += Weight(rank, token, k) * (float)(Choice(rank, token, k, step) + 1);
      EXPECT(rows[token * WIDTH + i] == scale * scale * Value(rank, token, i));
    }
  return 0;
}

int RunMoeStep(xcclComm_t comm, const char* plan) {
  xcclExperts_t layers[2] = {NULL, NULL};
  xcclExpertSizes_t sizes;
  int step, wrong;
  CALL(xcclCommLoadExperts(comm, plan));
  for (step = 0; step < 2; ++step) CALL(xcclExpertsCreate(&layers[step], comm));
  CALL(xcclExpertsGetSizes(layers[0], &sizes));
  EXPECT(sizes.ranks == RANKS && sizes.experts == EXPERTS && sizes.localExperts == EXPERTS / RANKS);
  EXPECT(sizes.topK == TOP_K && sizes.maxTokens >= TOKENS && sizes.rowBytes == 64);
  for (step = 0; step < 4; ++step) {
    wrong = RunStep(comm, layers[step % 2], step);
    if (wrong != 0) return wrong;
  }
  for (step = 0; step < 2; ++step) CALL(xcclExpertsDestroy(layers[step]));
  return 0;
}
